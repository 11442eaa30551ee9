package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// module is the path of the root package.
const module = "github.com/numaproj-contrib/numathrottle"

// A layer is a level of the architecture. A package imports packages of its own layer and of lower ones, never of a higher one.
type layer struct {
	name string
	// folders are the packages of the layer, including their subfolders that no other layer names. "." is only the root package.
	folders []string
}

// layers lists the layers from the bottom up.
var layers = []layer{
	{"words and tools", []string{
		"internal/bounded", "internal/callmeter", "internal/costrule", "internal/bounds", "internal/dialguard", "internal/duration",
		"internal/listen", "internal/llm/announce", "internal/llm/profile", "internal/llm/prompt", "internal/llm/usage", "internal/mutants",
		"internal/proof", "internal/config", "internal/redact",
		"internal/testkit", "internal/stopnotice", "internal/tagname", "internal/version", "internal/wire", "pkg/limit",
	}},
	{"pure parts", []string{
		"internal/engine/bucket", "internal/engine/gate", "internal/engine/join", "internal/ceiling",
		"internal/fairslots", "internal/hook", "internal/fairtags",
		"internal/health", "internal/pooldoc",
		"internal/engine/tagbucket", "internal/engine/waitqueue", "internal/sharing", "internal/virtual", "pkg/consensus/driver",
	}},
	{"limiters and pools", []string{"internal/protocol", "pkg/throttle", "pkg/consensus"}},
	{"stores, wrappers, telemetry", []string{
		"internal/admission", "internal/incarnation", "internal/poolview", "pkg/consensus/memstore", "pkg/consensus/natsstore",
		"pkg/consensus/redisstore", "pkg/consensus/storetest", "pkg/mapper", "pkg/operate", "pkg/otelthrottle", "pkg/sinker", "pkg/sourcer",
		"pkg/throttle/grpcthrottle", "pkg/throttle/httpthrottle", "pkg/throttle/throttletest", "internal/why",
	}},
	{"opening from a configuration", []string{".", "internal/drivers", "internal/llm/account", "internal/opening", "internal/taglevel", "pkg/llm", "pkg/open"}},
	{"programs", []string{
		"cmd", "examples", "internal/cli", "internal/console",
		"internal/program", "internal/proxy", "internal/whatif",
	}},
	{"test machinery", []string{
		"examples/llm-map/demo", "examples/llm-map/fakellm", "internal/autoscale", "internal/chaos", "internal/dataplane", "internal/demo",
		"internal/languages", "internal/meta", "internal/noloss", "internal/overload", "internal/quotatest", "internal/redelivery",
		"internal/shell", "internal/sim", "internal/soak", "internal/testenv", "internal/world", "internal/wrappers", "pkg/handlertest",
	}},
}

// apart are pairs of packages: the first must not import the second, not even indirectly.
var apart = [][2]string{
	{"pkg/throttle", "pkg/consensus"},
	{"pkg/throttle", "pkg/consensus/driver"},
	{"pkg/consensus", "pkg/throttle"},
	{"pkg/consensus/redisstore", "pkg/consensus/natsstore"},
	{"pkg/open", "pkg/consensus/redisstore"},
	{"pkg/open", "pkg/consensus/natsstore"},
	{"pkg/open", "internal/health"},
	{"internal/opening", "internal/health"},
	{"pkg/consensus/driver", "internal/engine/bucket"},
}

// A pkg is a package of this module, with its path below it.
type pkg struct {
	path, doc string
	imports   []string // those of this module
	layer     int      // its index in layers; -1: no layer names it
}

// load queries the go command for the packages in dir and below.
func load(ctx context.Context, dir string) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Doc,Imports", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var listed struct {
			ImportPath string   `json:"ImportPath"` //nolint:tagliatelle // the go command's names
			Doc        string   `json:"Doc"`        //nolint:tagliatelle // as above
			Imports    []string `json:"Imports"`    //nolint:tagliatelle // as above
		}
		switch err := d.Decode(&listed); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("go list: %w", err)
		}
		p := pkg{path: below(listed.ImportPath), doc: strings.NewReplacer("[", "", "]", "").Replace(listed.Doc)} // no doc links
		p.layer = layerOf(p.path)
		for _, path := range listed.Imports {
			if ours := below(path); ours != "" {
				p.imports = append(p.imports, ours)
			}
		}
		all = append(all, p)
	}
}

// below returns a path relative to the module: "." for the module itself, empty for a package of another one.
func below(path string) string {
	if path == module {
		return "."
	}
	rest, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return ""
	}
	return rest
}

// layerOf returns the index of the layer with the longest folder that holds path, or -1.
func layerOf(path string) int {
	found, longest := -1, 0
	for i, l := range layers {
		for _, folder := range l.folders {
			holds := path == folder || folder != "." && strings.HasPrefix(path, folder+"/")
			if holds && len(folder) > longest {
				found, longest = i, len(folder)
			}
		}
	}
	return found
}

// check returns a line for each import that points upwards, each package without a layer, and each pair that meets.
func check(all []pkg) (faults []string) {
	known := map[string]pkg{}
	for _, p := range all {
		known[p.path] = p
	}
	for _, p := range all {
		if p.layer < 0 {
			faults = append(faults, fmt.Sprintf("%s is in no layer; name it in internal/meta/layers", p.path))
			continue
		}
		for _, path := range p.imports {
			if to := known[path].layer; to > p.layer {
				faults = append(faults, fmt.Sprintf("%s (%s) imports %s (%s), which is above it", p.path, layers[p.layer].name, path, layers[to].name))
			}
		}
	}
	for _, pair := range apart {
		if way := wayTo(known, pair[0], pair[1], map[string]bool{}); way != nil {
			faults = append(faults, fmt.Sprintf("%s must not import %s: %s", pair[0], pair[1], strings.Join(way, " imports ")))
		}
	}
	return faults
}

// wayTo returns the chain of imports from one package to another; nil if there is none.
func wayTo(known map[string]pkg, from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, path := range known[from].imports {
		if way := wayTo(known, path, to, seen); way != nil {
			return append([]string{from}, way...)
		}
	}
	return nil
}

// beside matches the place where a package's first sentence goes beyond its task.
var beside = regexp.MustCompile(`[:;(]|, (?:and|as|because|but|by|in|of|on|one|or|so|that|to|when|where|which|with|within|without|whose)\b`)

// task returns the task of a package, from the first sentence of its documentation.
func task(doc string) string {
	if words := strings.SplitN(doc, " ", 3); len(words) == 3 && (words[0] == "Package" || words[0] == "Command") {
		doc = words[2]
	}
	if end := beside.FindStringIndex(doc); end != nil {
		doc = doc[:end[0]]
	}
	return strings.TrimRight(doc, " .")
}

// write prints the map as Markdown, the highest layer first.
func write(w io.Writer, all []pkg) error {
	var b strings.Builder
	for i, l := range slices.Backward(layers) {
		fmt.Fprintf(&b, "\n**%d. %s**\n\n| package | task |\n| --- | --- |\n", i+1, l.name)
		for _, p := range all {
			if p.layer != i {
				continue
			}
			name := p.path
			if name == "." {
				name = "numathrottle"
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.ReplaceAll(task(p.doc), "|", `\|`))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
