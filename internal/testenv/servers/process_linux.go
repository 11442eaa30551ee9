package servers

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// childAttributes lets the kernel kill the child when the thread that started it ends, and keeps a terminal's
// interrupt from it: it is ended by its owner only.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// isStopped reports whether a process stands still after SIGSTOP. The state follows the program's name in parentheses.
func isStopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, found := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return found && len(rest) > 0 && rest[0] == 'T'
}
