//go:build numathrottle_faults && !linux

package chaos

import "syscall"

// workerAttributes keeps a terminal's interrupt from a worker: it is ended by its
// test. There is no parent-death signal outside Linux.
func workerAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
