package httpthrottle

import (
	"io"
	"net/http"
	"sync"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Meter learns from one response the real cost of its call, so that the permit can be settled with that. Its methods are never called at
// once.
type Meter interface {
	// Write is called with each part of the body that the caller reads, in order. It must not keep p. Its results do not matter.
	io.Writer
	// Used is called once, when the caller has reached the end of the body, or an error,
	// or has closed it. When ok is false the cost is not known, and the permit counts as
	// drawn.
	Used() (tokens int, ok bool)
}

// An EndMeter is a Meter that distinguishes the cost of a whole answer from that of an answer that broke off.
type EndMeter interface {
	Meter
	// UsedUntil is called once, instead of Used. If complete is true, the caller has reached the end of the body (io.EOF). Else there was
	// an error, or the caller has closed the body before. When final is false, the call counts as drawn, or as tokens if that is more.
	UsedUntil(complete bool) (tokens int, final bool)
}

// settleWith arranges that the permit of an attempt is settled, and its context ends, when the caller is done
// with its response.
func settleWith(res *http.Response, g *guard, m Meter) {
	b := &settlingBody{ReadCloser: res.Body, permit: g.permit, drawn: g.drawn, done: g.done, meter: m}
	if res.Body == nil || res.Body == http.NoBody {
		b.settle(true)
		return
	}
	if w, ok := res.Body.(io.Writer); ok { // the connection itself, after a switch of protocols
		res.Body = &settlingConn{b, w}
		return
	}
	res.Body = b
}

// A settlingBody shows the body of a response to a meter, and settles the permit at its
// end.
type settlingBody struct {
	io.ReadCloser

	permit throttle.Permit
	drawn  func() int
	done   func()

	mu      sync.Mutex // Close may come during a Read
	meter   Meter      // nil for none
	settled bool
}

// Read implements io.Reader.
func (b *settlingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.observe(p[:n])
	}
	if err != nil {
		b.settle(err == io.EOF) // as io.Reader has it: wrapped it is another error
	}
	return n, err
}

// Close implements io.Closer.
func (b *settlingBody) Close() error {
	err := b.ReadCloser.Close()
	b.settle(false)
	return err
}

// A settlingConn is the connection of a call that switched protocols. The service may close its half while the caller goes on. So the end
// is Close or an error, and not the end of the service's half.
type settlingConn struct {
	*settlingBody
	io.Writer
}

// Read implements io.Reader.
func (c *settlingConn) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if n > 0 {
		c.observe(p[:n])
	}
	if err != nil && err != io.EOF { // as io.Reader has it
		c.settle(false)
	}
	return n, err
}

// CloseWrite closes the caller's half of the connection, where that can be done.
func (c *settlingConn) CloseWrite() error {
	if half, ok := c.Writer.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Unwrap returns the body of the base transport, for a caller that looks for one of its own.
func (b *settlingBody) Unwrap() io.ReadCloser { return b.ReadCloser }

func (b *settlingBody) observe(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.meter != nil && !b.settled {
		_, _ = b.meter.Write(p)
	}
}

// settle settles the permit, unless that was done. complete means that the body was read to its end.
func (b *settlingBody) settle(complete bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settled {
		return
	}
	b.settled = true
	defer b.done()
	// A meter that panics does not keep a slot of an InFlight for ever.
	drawn := b.drawn()
	defer b.permit.Settle(drawn)
	if b.meter == nil {
		return
	}
	if m, ok := b.meter.(EndMeter); ok {
		used, final := m.UsedUntil(complete)
		if !final {
			used = max(used, drawn)
		}
		b.permit.Settle(used)
		return
	}
	if used, ok := b.meter.Used(); ok {
		b.permit.Settle(used)
	}
}
