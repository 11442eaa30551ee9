package dataplane

import (
	"fmt"
	"time"
)

// endGrace is how long Close waits, once everything is answered, for the server
// to end its side. numaflow-go v0.12.0 never does: its MapFn returns only when
// the stream's context ends. Answers too many that arrive meanwhile are noticed.
const endGrace = 50 * time.Millisecond

// Close takes no more messages, waits for what is in flight for up to the drain
// timeout, closes the sending side, gives the server 50 ms to end its own, and
// ends the stream and the connection. Callers that wait for a place get
// ErrClosed at once. Further calls wait for the first and return what it
// returned.
//
// Errors: ErrBroken with the cause when the stream broke before or meanwhile;
// an error that names the IDs left without an answer.
func (m *Map) Close() error {
	m.closeOnce.Do(func() {
		close(m.closing)
		m.closeErr = m.close()
	})
	return m.closeErr
}

func (m *Map) close() error {
	drained := m.drain()
	var left []string
	if drained {
		// Every place was taken back, so nobody can write to outbox any more.
		m.ended.Store(true)
		close(m.outbox)
		m.awaitEnd(endGrace)
	} else {
		left = m.Outstanding()
	}
	m.shut()
	switch {
	case m.cause == ErrClosed: //nolint:errorlint // exactly this value: wrapped, it is something else
		return nil
	case len(left) > 0:
		return fmt.Errorf("close map stream: no answer within %s to %s", m.drainTimeout, listIDs(left))
	default:
		return fmt.Errorf("close map stream: %w", m.cause)
	}
}

// drain takes back every place, and tells whether it got them all.
func (m *Map) drain() bool {
	timer := time.NewTimer(m.drainTimeout)
	defer timer.Stop()
	for range m.calls {
		select {
		case <-m.free:
			continue
		default:
		}
		select {
		case <-m.free:
		case <-timer.C:
			return false
		case <-m.broken:
			return false
		}
	}
	return true
}

func (m *Map) awaitEnd(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-m.broken:
	case <-timer.C:
	}
}

// shut ends stream and connection, and waits for the goroutines to end.
func (m *Map) shut() {
	m.cancel()
	m.workers.Wait()
	_ = m.conn.Close() // it can only say that it was closed before
}

// Abort breaks the connection at once, as a platform that was killed. Everything
// in flight fails with ErrBroken. Close may be called later; it returns the same
// error.
func (m *Map) Abort() {
	m.shut()
}
