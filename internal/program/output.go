package program

import (
	"fmt"
	"io"
	"sync"
)

// An Output remembers the first error of a write, for callers that ignore it. A program whose output is lost, for instance on a full disk,
// has failed. It is safe for concurrent use.
type Output struct {
	to io.Writer

	mu  sync.Mutex
	err error
}

// NewOutput returns an Output that writes to a writer.
func NewOutput(to io.Writer) *Output { return &Output{to: to} }

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// Err returns the error with which a program ended, else the remembered one with the program's name, else nil.
func (o *Output) Err(name string, ended error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ended != nil || o.err == nil {
		return ended
	}
	return fmt.Errorf("%s: the output is lost: %w", name, o.err)
}
