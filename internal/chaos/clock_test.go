//go:build numathrottle_faults

package chaos

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock reads the machine's monotonic clock, which is the same for all processes.
func clock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // no such clock: nothing here can be judged
	}
	return time.Duration(ts.Nano())
}
