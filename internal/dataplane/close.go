package dataplane

import (
	"fmt"
	"time"
)

// endGrace is how long Close waits, once everything is answered, for the server to end its side. The servers of numaflow-go v0.12.0 never
// do for unary map and transform: they return only when the stream's context ends. Surplus answers in the meantime are noticed.
const endGrace = 50 * time.Millisecond

// Close accepts no more messages, and waits for those in flight for up to the drain timeout. Then it closes the sending side, gives the
// server 50 ms to end its own, and ends the stream and the connection. Callers that wait for a place get ErrClosed at once. Further calls
// wait for the first and return the same result.
//
// Errors: ErrBroken with the cause when the stream broke before or meanwhile;
// an error that names the IDs left without an answer.
func (l *link[Req, Resp]) Close() error {
	l.closeOnce.Do(func() {
		close(l.closing)
		l.closeErr = l.close()
	})
	return l.closeErr
}

func (l *link[Req, Resp]) close() error {
	var left []string
	if l.kind.drain(l.drainTimeout) {
		l.end()
		l.awaitEnd(endGrace)
	} else {
		left = l.kind.Outstanding()
	}
	l.shut()
	return l.closedWith(left)
}

// end closes the sending side. Every place was taken back, so nobody can write to
// outbox any more.
func (l *link[Req, Resp]) end() {
	l.ended.Store(true)
	close(l.outbox)
}

// closedWith is the result of Close, when the stream is over.
func (l *link[Req, Resp]) closedWith(left []string) error {
	switch {
	case l.cause == ErrClosed: //nolint:errorlint // exactly this value: wrapped, it is something else
		return nil
	case len(left) > 0:
		return fmt.Errorf("close stream: no answer within %s to %s", l.drainTimeout, listIDs(left))
	default:
		return fmt.Errorf("close stream: %w", l.cause)
	}
}

func (l *link[Req, Resp]) awaitEnd(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.broken:
	case <-timer.C:
	}
}

// shut ends stream and connection, and waits for the goroutines to end.
func (l *link[Req, Resp]) shut() {
	l.cancel()
	l.workers.Wait()
	_ = l.conn.Close() // it can only say that it was closed before
}

// Abort breaks the connection at once, as a platform that was killed. Everything
// in flight fails with ErrBroken. Close may be called later; it returns the same
// error.
func (l *link[Req, Resp]) Abort() {
	l.shut()
}

// Broken is closed when the stream is over, for whatever reason.
func (g *gate) Broken() <-chan struct{} { return g.broken }
