//go:build linux

package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A bareRoot is how a program runs as an image has it: with nothing of this machine but its network.
type bareRoot struct {
	// Root is the folder that becomes the root, read-only. Writable is mounted at At in it.
	Root     string `json:"root"`
	Writable string `json:"writable"`
	At       string `json:"at"`
	// User is UID:GID. Within a user namespace the process is that user already.
	User string   `json:"user"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
}

// bareRootVariable holds a bareRoot as JSON: then this test binary is no test, but sets it up and becomes
// the program.
const bareRootVariable = "IMAGETEST_BARE_ROOT"

// notBare is the exit code for a root that could not be set up.
const notBare = 97

func becomeProgram(encoded string) {
	var b bareRoot
	err := json.Unmarshal([]byte(encoded), &b)
	if err == nil {
		err = b.enter()
	}
	if err == nil {
		err = b.check()
	}
	if err == nil {
		err = syscall.Exec(b.Args[0], b.Args, b.Env)
	}
	fmt.Fprintln(os.Stderr, "bare root:", err)
	os.Exit(notBare)
}

// enter makes the root of this process that of an image, and gives up all rights.
func (b *bareRoot) enter() error {
	mount := func(source, target string, flags uintptr) error {
		return os.NewSyscallError("mount "+target, unix.Mount(source, target, "", flags, ""))
	}
	var at unix.Statfs_t
	if err := errors.Join(
		mount("", "/", unix.MS_REC|unix.MS_PRIVATE), // nothing of this is seen outside
		mount(b.Root, b.Root, unix.MS_BIND),
		mount(b.Writable, filepath.Join(b.Root, b.At), unix.MS_BIND),
		unix.Statfs(b.Root, &at),
	); err != nil {
		return err
	}
	// A user namespace may not take away what the mount has been given before.
	kept := uintptr(at.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	return errors.Join(
		mount("", b.Root, unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|kept),
		os.NewSyscallError("chroot", unix.Chroot(b.Root)),
		os.Chdir("/"),
		b.dropRights(),
	)
}

func (b *bareRoot) dropRights() error {
	uid, gid, err := b.ids()
	if err != nil {
		return err
	}
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
			return fmt.Errorf("become user %s: %w", b.User, err)
		}
	}
	return errors.Join(
		os.NewSyscallError("clear ambient capabilities", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)),
		os.NewSyscallError("forbid new privileges", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)),
	)
}

func (b *bareRoot) ids() (uid, gid int, err error) {
	user, group, _ := strings.Cut(b.User, ":")
	uid, err1 := strconv.Atoi(user)
	gid, err2 := strconv.Atoi(group)
	return uid, gid, errors.Join(err1, err2)
}

// check fails if the root is not what an image has: a test in a comfortable root shows nothing.
func (b *bareRoot) check() error {
	uid, gid, err := b.ids()
	switch {
	case err != nil:
		return err
	case os.Getuid() != uid || os.Getgid() != gid:
		return fmt.Errorf("user %d:%d, want %s", os.Getuid(), os.Getgid(), b.User)
	}
	if err := os.WriteFile("/new", nil, 0o600); !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("writing to the root: %w, want: %w", err, unix.EROFS)
	}
	if err := os.WriteFile(filepath.Join(b.At, "new"), nil, 0o600); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(b.At, "new")); err != nil {
		return err
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := "/" + e.Name(); name != b.Args[0] && !slices.Contains([]string{"/etc", "/usr", "/var"}, name) {
			return fmt.Errorf("%s is there, which no image has", name)
		}
	}
	return nil
}
