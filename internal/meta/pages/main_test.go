package pages

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository, so that the paths in the pages are paths of the tests.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Programs are compiled as they are shipped, and not once more for the race detector of this process.
	if err := os.Setenv("CGO_ENABLED", "0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
