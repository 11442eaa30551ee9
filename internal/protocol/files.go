package protocol

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// This file has the rules by which the settings files of processors become the document "file".
//
//   - A processor whose file changes while it runs puts it into the document, unless the pool has had that file since the one that the
//     processor had before: then its copy is only late.
//   - A processor that starts with a file that the pool has never had puts it there when no other live processor has the file in force: it
//     was changed while nobody ran. While somebody has that one, nobody knows which is newer, and the file in force stays.
//   - Otherwise the document stays. So an older file never replaces a newer one, and a restart changes nothing.
//
// Without a document each processor keeps its settings from the start. The first change makes one; the files that other processors report
// then are older.

// An OwnFile is the settings file of one process, as far as it concerns one pool.
type OwnFile struct {
	// File has what the file says, without Count and Seen; an empty Hash: the process has no file.
	File
	// Changes counts how often the file has changed since the process started.
	Changes int
	// Fault says why the file cannot be used; File is the last usable one then. Restart are its settings that count only after a restart.
	Fault   string
	Restart []string
}

// A FileSource is the settings file of a process for one pool. Neither method may block; both are called with a lock held.
type FileSource interface {
	// File returns the file as it is now.
	File() OwnFile
	// InForce says which file counts in the pool; the zero File: none.
	InForce(f File)
}

// WithFiles lets the member follow a settings file. Defaults to none.
func WithFiles(s FileSource) func(*JoinOptions) { return func(o *JoinOptions) { o.Files = s } }

// settleFile is how long a file must have been the one in force, and the processor's own, before older copies cannot come any more. A
// kubelet updates a mounted file within a minute and a half.
const settleFile = 3 * time.Minute

// A filing is the part of a processor that follows settings files.
type filing struct {
	own      OwnFile
	has      bool   // own was set
	last     string // its hash, before a change that is pending
	pending  bool   // own has changed, and is to be put into the document
	placed   bool   // at is known
	at       int    // the number of own among the files of the pool; unplaced: the pool has not had it
	changed  time.Duration
	file     File // the document; the last readable one
	unread   error
	recorded time.Duration // when the document was loaded
}

// unplaced is the number of a file that the pool has not had: it is older than all.
const unplaced = -1 << 31

// SetFile sets the file of this process, as of now. A change is proposed with the next request.
func (p *Processor) SetFile(now time.Duration, own OwnFile) { p.files.set(now, own) }

// File returns the file in force in the pool, as of the last answer; the zero File: none.
func (p *Processor) File() File { return p.files.file }

func (f *filing) set(now time.Duration, own OwnFile) {
	switch {
	case f.has && own.Changes != f.own.Changes:
		f.pending, f.changed = own.Hash != f.last, now
	case !f.pending:
		f.last = own.Hash
	}
	f.own, f.has = own, true
}

func (f *filing) restart() {}

// take reads the document.
func (f *filing) take(c *core, now time.Duration, _ *driver.Answer) urgency {
	if slices.Contains(c.changed, fileDocument) {
		next, err := fileDoc.Read(c.docs.Find(fileDocument).Document)
		if f.unread = err; err == nil {
			f.file, f.recorded = next, now
		}
	}
	switch {
	case !f.placed && f.has && !f.pending:
		f.placed = true
		f.place(f.own.Hash)
	case f.pending && f.file.Hash == f.own.Hash && f.file.Hash != "":
		f.accept()
	case !f.pending && f.file.Hash == f.own.Hash && now-max(f.changed, f.recorded) >= settleFile:
		f.place(f.own.Hash)
	}
	if _, due := f.step(c); due {
		return urgencyFast
	}
	return urgencyNone
}

// place sets the number of the own file to that of the newest one of the pool with this hash.
func (f *filing) place(hash string) {
	number, ok := f.file.numberOf(hash)
	if f.at = number; !ok {
		f.at = unplaced
	}
}

// accept ends a change of the own file: the pool has it.
func (f *filing) accept() {
	f.pending, f.placed, f.last = false, true, f.own.Hash
	f.place(f.own.Hash)
}

// report proposes the own file if that is due, and reports it to the others.
func (f *filing) report(c *core, _ time.Duration, req *request) {
	if f.pending && f.late() {
		f.accept()
	}
	if next, due := f.step(c); due {
		req.Documents = propose(req.Documents, &fileDoc, &c.docs, next, uint16(req.Nonce))
	}
	w := &req.note.file
	switch w.hash = f.last; {
	case f.own.Hash == "" && f.file.Hash != "":
		w.hash = noFile
	case f.own.Hash == "":
		return
	}
	w.fault, w.restart = f.own.Fault != "", len(f.own.Restart) > 0
}

// late reports whether the pool has had the changed file since the one that this processor had before.
func (f *filing) late() bool {
	number, ok := f.file.numberOf(f.own.Hash)
	at := unplaced
	if f.placed {
		at = f.at
	}
	return ok && number > at
}

// step returns the document that this processor should propose, if that is due.
func (f *filing) step(c *core) (next File, due bool) {
	if f.own.Hash == "" || c.clock.answers == 0 || f.unread != nil {
		return next, false
	}
	if !f.pending {
		if _, known := f.file.numberOf(f.own.Hash); known || f.file.Hash == "" || !f.abandoned(c) {
			return next, false
		}
	} else if f.late() {
		return next, false
	}
	var others []string
	if f.last != "" { // else it is the own file
		others = append(others, f.last)
	}
	for n := range c.others {
		if n.file.hash != "" && n.file.hash != noFile {
			others = append(others, n.file.hash)
		}
	}
	next = f.file.followedBy(f.own.File, others)
	_, err := next.body()
	return next, err == nil
}

// abandoned reports whether no other live processor has the file in force. One that does not say may have it.
func (f *filing) abandoned(c *core) bool {
	for n := range c.others {
		if n.file.hash == "" || n.file.hash == f.file.Hash {
			return false
		}
	}
	return true
}

// noFile is the hash of a processor without a file, in a pool that has one in force.
const noFile = "-"

// A fileWord is what a note says about the processor's file. An empty hash: nothing.
type fileWord struct {
	hash           string
	fault, restart bool
}

// String returns the word: the hash, then ! for a file that cannot be used, and r where a restart is needed.
func (w *fileWord) String() string {
	text := w.hash
	if w.fault {
		text += "!"
	}
	if w.restart && text != "" {
		text += "r"
	}
	return text
}

// fileWordOf reads the output of String. Anything else is no word.
func fileWordOf(text string) (w fileWord) {
	w.hash, w.restart = strings.CutSuffix(text, "r")
	w.hash, w.fault = strings.CutSuffix(w.hash, "!")
	if w.hash != noFile && !isFileHash(w.hash) {
		return fileWord{}
	}
	return w
}

// A FileView is what a processor knows of settings files.
type FileView struct {
	// InForce is the file that counts in the pool, and Own that of the process.
	InForce File
	Own     OwnFile
}

// ClearFile ends what a settings file has set in a pool, even if this release cannot read it, and forgets which files the pool has had.
// Processors return to their settings from the start, until a file changes again. Errors are those of SaveOverride.
func ClearFile(ctx context.Context, s driver.Store, pool string) (before File, err error) {
	_, err = fileDoc.Change(ctx, s, pool, func(r pooldoc.Recorded[File]) (File, bool, error) {
		before = r.Value
		return File{Count: min(r.Value.Count+1, maxFiles)}, r.Err != nil || r.Value.Hash != "", nil //nolint:nilerr // what cannot be read ends, too
	})
	return before, saving(err, "consensus: ending the settings of a file in pool %q: %w", pool)
}
