package httpthrottle

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// peekSize is how much of the body of an error is read to classify it.
	peekSize = 1 << 20
	// peekTime is how long that may take: the status has come, and the call waits for no more than
	// a hint.
	peekTime = time.Second
)

// hasBody reports whether a response has something to read.
func hasBody(res *http.Response) bool { return res.Body != nil && res.Body != http.NoBody }

// A peekedBody is the body of a response. Its beginning is read ahead in a goroutine of its own, so that nobody waits for it for longer
// than peekTime. A reader still gets all of it.
type peekedBody struct {
	io.ReadCloser // the body

	until time.Time
	ended chan struct{} // closed when no more is read ahead

	mu     sync.Mutex
	more   sync.Cond // on mu: there is more, or it has ended
	ahead  []byte    // what was read ahead
	passed int       // how much of it the reader has had
	err    error     // with which it ended; nil: the rest is in the body
	over   bool
}

// peekAt begins to read ahead.
func peekAt(res *http.Response) *peekedBody {
	if b, ok := res.Body.(*peekedBody); ok {
		return b
	}
	b := &peekedBody{ReadCloser: res.Body, until: time.Now().Add(peekTime), ended: make(chan struct{})}
	b.more.L = &b.mu
	res.Body = b
	go b.fill()
	return b
}

// fill reads ahead.
func (b *peekedBody) fill() {
	defer close(b.ended)
	const chunk = 4 << 10
	buffer := make([]byte, chunk)
	for left := peekSize; ; {
		n, err := b.ReadCloser.Read(buffer[:min(chunk, left)])
		left -= n
		over := err != nil || left <= 0
		b.mu.Lock()
		b.ahead, b.err, b.over = append(b.ahead, buffer[:n]...), err, over
		b.more.Broadcast()
		b.mu.Unlock()
		if over {
			return
		}
	}
}

// await returns what could be read in time.
func (b *peekedBody) await() []byte {
	timer := time.NewTimer(time.Until(b.until))
	defer timer.Stop()
	select {
	case <-b.ended:
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clip(b.ahead)
}

// Read implements io.Reader.
func (b *peekedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	for b.passed == len(b.ahead) && !b.over {
		b.more.Wait()
	}
	n := copy(p, b.ahead[b.passed:])
	b.passed += n
	rest, err := b.passed == len(b.ahead), b.err
	b.mu.Unlock()
	switch {
	case n > 0 || !rest || len(p) == 0:
		return n, nil
	case err != nil:
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// discard reads a response that nobody gets, so that its connection can be used again, and closes it. It reads only the beginning of a long
// or slow one, and gives its connection up.
func discard(res *http.Response) {
	if res == nil || res.Body == nil {
		return
	}
	if hasBody(res) {
		peekAt(res).await()
	}
	_ = res.Body.Close()
}
