// Package version identifies the build of this module in a program, from the information that the Go tool embeds.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// A Build describes a program's origin.
type Build struct {
	// Version is the module's version: a tag such as v1.2.3 or a pseudo-version, with the suffix "+dirty" if files were changed; or
	// "(devel)" if unknown.
	Version string
	// Revision is the commit, and Time its time as in RFC 3339. Both are empty if the program was not built in a checkout.
	Revision, Time string
	// Modified reports whether files differed from the commit.
	Modified bool
	// Go is the version of the toolchain, and Platform the target.
	Go, Platform string
}

// unknown is the version of a program built without one.
const unknown = "(devel)"

// Read returns the build of the running program.
func Read() Build {
	info, _ := debug.ReadBuildInfo()
	return of(info)
}

// modulePath is the path of this module.
const modulePath = "github.com/numaproj-contrib/numathrottle"

// Module returns the build of this module in the running program, which may be another one that imports it. Then only the Version may
// contain a commit.
func Module() Build {
	info, _ := debug.ReadBuildInfo()
	return module(info)
}

// module is Module for the Go tool's information; nil without any.
func module(info *debug.BuildInfo) Build {
	if info == nil || info.Main.Path == modulePath {
		return of(info)
	}
	b := of(nil)
	for _, dep := range info.Deps {
		if dep.Path != modulePath {
			continue
		}
		if dep.Replace != nil {
			dep = dep.Replace // a replacement by a folder has no version
		}
		b.Version = cmp.Or(dep.Version, unknown)
	}
	return b
}

// of is Read for the Go tool's information; nil without any.
func of(info *debug.BuildInfo) Build {
	b := Build{Version: unknown, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns all of it in one line.
func (b Build) String() string {
	parts := []string{b.Go, b.Platform}
	if b.Revision != "" {
		commit := "commit " + b.Revision[:min(len(b.Revision), 12)]
		if b.Modified {
			commit += " with changes"
		}
		parts = append([]string{commit}, parts...)
	}
	return fmt.Sprintf("%s (%s)", b.Version, strings.Join(parts, ", "))
}
