package handlerproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

// clear removes the files of an earlier run, so that the platform waits for this one. It deletes only a socket, and a file that can be a
// server info, in case a setting names a wrong file.
func (p *proxy) clear() error {
	var d net.Dialer
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if conn, err := d.DialContext(ctx, "unix", p.Socket); err == nil {
		_ = conn.Close()
		return fmt.Errorf("handlerproxy: socket is %q, on which another process listens, allowed: one of its own; "+
			"does the handler listen on the platform's socket?", p.Socket)
	}
	return errors.Join(
		remove("socket", p.Socket, "a path at which there is a socket or nothing", isSocket),
		remove("serverInfo", p.ServerInfo, "a path at which there is a server-info file or nothing", isServerInfo),
	)
}

// remove deletes the file at the path of a setting, if an earlier run can have left it.
func remove(setting, path, allowed string, left func(found fs.FileInfo) bool) error {
	found, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !left(found):
		return fmt.Errorf("handlerproxy: %s is %q, where there is a file of another kind, which is not deleted, allowed: %s", setting, path, allowed)
	case err == nil:
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("handlerproxy: what an earlier run has left: %w", err)
	}
	return nil
}

func isSocket(found fs.FileInfo) bool { return found.Mode()&fs.ModeType == fs.ModeSocket }

// longestInfo exceeds the size of any server info, in bytes.
const longestInfo = 64 << 10

func isServerInfo(found fs.FileInfo) bool {
	return found.Mode().IsRegular() && found.Size() <= longestInfo
}
