//go:build numathrottle_faults && !linux

package chaos

import (
	"syscall"
	"testing"
)

// workerAttributes: only Linux kills a worker whose parent was killed.
func workerAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// processors returns one, whichever it is: only Linux binds a thread.
func processors(testing.TB) []processor {
	return []processor{{name: "a processor", bind: func() {}}}
}
