// Command run runs "go test" with the switches of package mutants in the product, and with the tests that use them.
// Its arguments are those of "go test". It is started in the root of the module, by make mutants.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(1) // go test has said why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return fmt.Errorf("folder for the overlay: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	overlay, err := mutants.WriteOverlay(".", folder)
	if err != nil {
		return err
	}
	args = append([]string{"test", "-vet=off", "-overlay", overlay, "-tags", "numathrottle_mutants"}, args...)
	test := exec.CommandContext(ctx, "go", args...) //nolint:gosec // what the user types
	test.Stdout, test.Stderr = os.Stdout, os.Stderr
	test.Cancel = func() error { return test.Process.Signal(os.Interrupt) }
	return test.Run()
}
