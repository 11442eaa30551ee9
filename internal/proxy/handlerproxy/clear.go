package handlerproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

// clear removes the files of an earlier run, so that the platform waits for this one. A setting may name a wrong file: it deletes nothing
// unless both are what a run leaves, a socket on which nobody listens and a server info with this proxy's mark.
func (p *proxy) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	socket, err := listen.Stale(ctx, p.Socket)
	if err != nil {
		err = fmt.Errorf("handlerproxy: socket is %q: %w, which stays, allowed: a path at which there is nothing, or a socket that an earlier "+
			"run has left; does the handler listen on the platform's socket?", p.Socket, err)
	}
	reported, infoErr := p.staleInfo()
	if err := errors.Join(err, infoErr); err != nil {
		return err
	}
	return errors.Join(remove(p.Socket, socket), remove(p.ServerInfo, reported))
}

func remove(path string, stale bool) error {
	if !stale {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("handlerproxy: what an earlier run has left: %w", err)
	}
	return nil
}

// longestInfo exceeds the size of any server info, in bytes.
const longestInfo = 64 << 10

// staleInfo reports whether there is a server info that this proxy has written, in this run or an earlier one. Errors: any other file.
func (p *proxy) staleInfo() (bool, error) {
	found, err := os.Lstat(p.ServerInfo)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("handlerproxy: serverInfo: %w", err)
	}
	if of, err := os.Stat(p.HandlerServerInfo); err == nil && os.SameFile(of, found) {
		return false, fmt.Errorf("handlerproxy: serverInfo is %q, which is the handler's file, too, allowed: another one than handlerServerInfo", p.ServerInfo)
	}
	if found.Mode().IsRegular() && found.Size() <= longestInfo {
		if _, about, err := readInfo(p.ServerInfo); err == nil && about.Metadata[markKey] == p.Socket {
			return true, nil
		}
	}
	return false, fmt.Errorf("handlerproxy: serverInfo is %q, where there is a file that is not this proxy's, which stays, "+
		"allowed: a path at which there is nothing, or the server info of an earlier run with the same socket; "+
		"delete the file if an earlier release of this proxy has left it", p.ServerInfo)
}
