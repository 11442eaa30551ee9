package incarnation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bounded"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// patience bounds each use of the file: a hanging folder must not delay a sync.
const patience = 500 * time.Millisecond

// errBusy means that another process, or another File of this one, holds the lock.
var errBusy = errors.New("the file is locked by another process")

// A File is a protocol.TakeoverLock in a file that the successive processes of one ID share, such as the containers of a pod. If it fails, it
// logs the cause once and does nothing from then on: a dead process's claim then stays for a removal time, as without it.
type File struct {
	path string
	is   form
	log  *slog.Logger

	lock           *lock // nil: not held
	off            bool  // it cannot be used, or is no longer
	inherited      []protocol.LastState
	takeoverRecord protocol.TakeoverRecord
}

var _ protocol.TakeoverLock = (*File)(nil)

// New returns the File of a processor of a pool in a folder, which must exist. It does no I/O before the first Inherit.
func New(folder, pool, id string, log *slog.Logger) *File {
	sum := sha256.Sum256([]byte(pool + "\x00" + id))
	return &File{
		path: filepath.Join(folder, "numathrottle-"+hex.EncodeToString(sum[:12])+".lock"),
		is:   form{Pool: pool, ID: id}, log: log.With("pool", pool, "pod", id),
	}
}

// Inherit implements protocol.TakeoverLock.
func (f *File) Inherit() (lastStates []protocol.LastState, held bool) {
	if f.off {
		return nil, false
	}
	if f.lock != nil {
		return f.inherited, true
	}
	l, err := do(func() (*lock, error) { return acquire(f.path) })
	if errors.Is(err, errBusy) {
		return nil, false // the previous process may live: continue as without the file
	}
	if err != nil {
		f.giveUp(err)
		return nil, false
	}
	f.lock = l
	f.is.Boot, f.is.Device, f.is.Inode = l.boot, l.device, l.inode
	content, err := do(l.read)
	if err != nil {
		f.giveUp(err)
		return nil, false
	}
	if len(content) > 0 {
		f.takeoverRecord.LastStates = f.read(content)
	}
	f.inherited = f.takeoverRecord.Inherit(true)
	return f.inherited, true
}

// read returns the last states that apply here.
func (f *File) read(content []byte) []protocol.LastState {
	found, err := decode(content)
	switch {
	case err != nil:
		f.log.Info("what the process before this one has left behind cannot be read: its share stays on record for 1.5 leases",
			"file", f.path, "error", err)
		return nil
	case !found.same(&f.is):
		return nil // a copy, or from before the machine was started
	}
	return found.LastStates
}

// Settled implements protocol.TakeoverLock.
func (f *File) Settled() { f.inherited = nil }

// Write implements protocol.TakeoverLock.
func (f *File) Write(own protocol.LastState) {
	if f.off || f.lock == nil {
		return
	}
	f.takeoverRecord.Write(f.inherited, own)
	f.is.LastStates = f.takeoverRecord.LastStates
	content, err := f.is.encode()
	if err == nil {
		_, err = do(func() (struct{}, error) { return struct{}{}, f.lock.write(content) })
	}
	if err != nil {
		f.giveUp(err)
	}
}

// Release implements protocol.TakeoverLock.
func (f *File) Release(keep bool) {
	l, off := f.lock, f.off
	f.lock, f.off = nil, true
	if l == nil || off {
		return // an unused file stays locked until the process ends
	}
	_, _ = do(func() (struct{}, error) {
		defer l.release()
		if keep {
			return struct{}{}, nil
		}
		return struct{}{}, l.write(nil)
	})
}

// giveUp logs an error and disables f. It keeps a held lock: the content belongs to dead processes, or to this one.
func (f *File) giveUp(err error) {
	f.off = true
	f.log.Warn("no lock in the state folder: after a crash of this process its share stays on record for 1.5 leases, as without a state folder",
		"file", f.path, "error", err)
}

// do bounds one use of the file.
func do[T any](call func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v, err := bounded.Call(ctx, call)
	if errors.Is(err, context.DeadlineExceeded) {
		return v, fmt.Errorf("no answer within %s", patience)
	}
	return v, err
}
