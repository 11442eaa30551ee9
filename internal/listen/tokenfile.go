package listen

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// fileGrain bounds the granularity of a file system's clock: a file changed so shortly before it was read may have been changed again
// since.
const fileGrain = time.Second

// TokenIn returns the Token of a server: text or, if there is a file, the file's content, reread when it has changed. text is then its
// initial content. While the file is unusable, or has a token of less than least bytes, no caller is admitted, and log receives the reason
// once.
func TokenIn(file, text string, least int, log *slog.Logger) Token {
	t := NewToken(text)
	if file == "" {
		return t
	}
	return Token{set: true, file: &tokenFile{path: file, least: least, log: log, sum: t.sum, usable: t.set}}
}

// LeastToken returns the minimum length in bytes of the token of a server at some addresses.
func LeastToken(addrs []Addr) int {
	if _, open := NeedsToken(addrs); open {
		return MinTokenBytes
	}
	return 1
}

// A tokenFile is a file with a token.
type tokenFile struct {
	path  string
	least int // bytes
	log   *slog.Logger

	mu     sync.Mutex
	info   os.FileInfo // when it was read; nil: it was not
	read   time.Time
	sum    [sha256.Size]byte
	usable bool
	fault  string // the last logged one
}

// current returns the hash of the token in the file. ok is false if it is unusable.
func (f *tokenFile) current() (sum [sha256.Size]byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err == nil && f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() &&
		info.ModTime().Equal(f.info.ModTime()) && f.read.Sub(info.ModTime()) > fileGrain {
		return f.sum, f.usable
	}
	now := time.Now()
	text, err := config.ReadSecretFile(f.path)
	if err == nil && len(text) < f.least {
		err = fmt.Errorf("the token has %d bytes, allowed: at least %d", len(text), f.least)
	}
	if err != nil {
		f.usable, f.info = false, nil
		f.tell(err.Error())
		return sum, false
	}
	sum = sha256.Sum256([]byte(text))
	if f.sum != sum && f.sum != [sha256.Size]byte{} {
		f.log.Info("the token was read anew, and is another one", "file", f.path)
	}
	f.sum, f.usable, f.info, f.read, f.fault = sum, true, info, now, ""
	return sum, true
}

// tell logs a fault once.
func (f *tokenFile) tell(fault string) {
	if f.fault != fault {
		f.log.Error("the token cannot be read: nobody is let in until it can", "file", f.path, "error", fault)
	}
	f.fault = fault
}
