package image

import (
	"fmt"
	"os"
	"testing"
)

// buildDir is where the programs are built, until the tests are over.
var buildDir string

func TestMain(m *testing.M) {
	if encoded := os.Getenv("IMAGETEST_BARE_ROOT"); encoded != "" {
		becomeProgram(encoded)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	buildDir = dir
	return m.Run()
}
