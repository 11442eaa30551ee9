//go:build numathrottle_faults

package chaos

import "syscall"

// workerAttributes lets the kernel kill a worker when the thread that started it
// ends, so that none outlives a test that was itself killed.
func workerAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
