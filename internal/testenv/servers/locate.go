package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNotInstalled is wrapped by the error of every Start function whose program is not on this machine. The error
// names the program and the Debian package that brings it.
var ErrNotInstalled = errors.New("not installed")

// locate finds a program on the PATH or where distributions put servers: sbin is not on every user's PATH.
func locate(program, debianPackage string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/usr/local/bin"} {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is %w: on Debian, apt-get install %s", program, ErrNotInstalled, debianPackage)
}
