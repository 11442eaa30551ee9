package image

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/short"
)

// built holds where the programs of a platform are.
var built sync.Map

// build builds the programs for linux on an architecture, once, and returns their folder.
func build(t *testing.T, arch string) string {
	t.Helper()
	short.Skip(t, "it builds the programs")
	once, _ := built.LoadOrStore(arch, sync.OnceValues(func() (string, error) {
		dir := filepath.Join(buildDir, arch)
		cmd := exec.CommandContext(t.Context(), "bash", "scripts/build.sh", dir)
		cmd.Dir, cmd.Env = root, append(cmd.Environ(), "GOOS=linux", "GOARCH="+arch)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
		}
		return dir, err
	}))
	do, ok := once.(func() (string, error))
	require.True(t, ok)
	dir, err := do()
	require.NoError(t, err)
	return dir
}

// An image has no loader and no library for a program that is linked dynamically.
func TestBinariesAreStatic(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			if arch != own && os.Getenv(allPlatforms) != "1" {
				t.Skipf("everything is compiled once more for %s, which takes minutes: set %s=1", arch, allPlatforms)
			}
			dir := build(t, arch)
			for _, program := range programs {
				requireStatic(t, filepath.Join(dir, program), machine)
			}
		})
	}
}

// allPlatforms has the binaries of all platforms checked, not only those of this machine's.
//
// It has no prefix of the program's settings: the processes of other tests inherit it, and refuse what is no setting.
const allPlatforms = "ALL_PLATFORMS"

func requireStatic(t *testing.T, file string, machine elf.Machine) {
	t.Helper()
	f, err := elf.Open(file)
	require.NoError(t, err)
	require.Equal(t, machine, f.Machine, file)
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "%s wants a loader", file)
		require.NotEqual(t, elf.PT_DYNAMIC, p.Type, "%s is linked dynamically", file)
	}
	require.Nil(t, f.Section(".dynamic"), file)
	require.Nil(t, f.Section(".debug_info"), "%s is not stripped", file)
	require.NoError(t, f.Close())
}

func TestBuildScript(t *testing.T) {
	for arg, want := range map[string]string{
		"":     "build: no folder to build into, allowed: scripts/build.sh OUT [PROGRAM ...]",
		"nope": "build: nope is no program, allowed: numathrottle llm-map http-sink",
	} {
		args := []string{"scripts/build.sh"}
		if arg != "" {
			args = append(args, t.TempDir(), arg)
		}
		cmd := exec.CommandContext(t.Context(), "bash", args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), want)
	}
}

// own is the architecture that programs run on here.
const own = runtime.GOARCH
