package image

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// built holds where the programs of a platform are.
var built sync.Map

// build builds the programs for linux on an architecture, once, and returns their folder.
func build(t *testing.T, arch string) string {
	t.Helper()
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
		dir := build(t, arch)
		for _, program := range programs {
			f, err := elf.Open(filepath.Join(dir, program))
			require.NoError(t, err)
			require.Equal(t, machine, f.Machine, "%s for %s", program, arch)
			for _, p := range f.Progs {
				require.NotEqual(t, elf.PT_INTERP, p.Type, "%s for %s wants a loader", program, arch)
				require.NotEqual(t, elf.PT_DYNAMIC, p.Type, "%s for %s is linked dynamically", program, arch)
			}
			require.Nil(t, f.Section(".dynamic"))
			require.Nil(t, f.Section(".debug_info"), "stripped")
			require.NoError(t, f.Close())
		}
	}
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
