package testkit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// A Book is a writer whose text is read while others write. The zero Book is empty. Its methods are safe for concurrent use.
type Book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *Book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns the text so far.
func (b *Book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Reset drops the text.
func (b *Book) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// Printf writes a line, as clients of stores and telemetry log.
func (b *Book) Printf(_ context.Context, format string, args ...any) {
	fmt.Fprintf(b, format+"\n", args...)
}

// Logger returns a logger whose lines go to b.
func (b *Book) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
