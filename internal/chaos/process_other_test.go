//go:build numathrottle_faults && !linux

package chaos

import (
	"syscall"
	"testing"
)

// workerAttributes keeps a terminal's interrupt from a worker: it is ended by its
// test. There is no parent-death signal outside Linux.
func workerAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// processors returns one, whichever it is: only Linux binds a thread.
func processors(testing.TB) []processor {
	return []processor{{name: "a processor", bind: func() {}}}
}
