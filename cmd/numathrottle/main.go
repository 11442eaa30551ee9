// Command numathrottle shows the pools of numathrottle to operators, and changes their limits.
// See numathrottle --help.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // TZ counts in an image, too, which has no time zones of its own

	"github.com/numaproj-contrib/numathrottle/internal/cli"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

func main() {
	program.MuteTransports()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.New().Run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(cli.ExitCode(err))
	}
}
