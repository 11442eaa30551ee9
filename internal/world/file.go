package world

import (
	"fmt"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// A File is the settings file of one process, with a limit per second. Its methods are safe for concurrent use.
type File struct {
	mu      sync.Mutex
	own     protocol.OwnFile
	inForce protocol.File
}

var _ protocol.FileSource = (*File)(nil)

// NewFile returns a file with which a process has started.
func NewFile(limit int) *File { return &File{own: protocol.OwnFile{File: FileOf(limit)}} }

// FileOf returns the content with a limit; its hash is that of no other limit.
func FileOf(limit int) protocol.File {
	return protocol.File{Name: "config.yaml", Hash: fmt.Sprintf("%08x", limit), Max: limit, Per: time.Second}
}

// File implements protocol.FileSource.
func (f *File) File() protocol.OwnFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.own
}

// InForce implements protocol.FileSource.
func (f *File) InForce(in protocol.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inForce = in
}

// Used returns the file in force in the pool.
func (f *File) Used() protocol.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inForce
}

// Change replaces the content by one with another limit.
func (f *File) Change(limit int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own.File, f.own.Changes = FileOf(limit), f.own.Changes+1
}
