//go:build !linux

package servers

import "syscall"

// childAttributes keeps a terminal's interrupt from the child. There is no parent-death signal outside Linux: a child
// outlives a parent that is killed.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// isStopped takes SIGSTOP to have worked.
func isStopped(int) bool { return true }
