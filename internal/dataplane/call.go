package dataplane

import (
	"strconv"
	"strings"
	"sync/atomic"
)

// A call is a place in flight. It serves one message after another, each with an ID of its own, "<place>-<turn>". The place finds the call
// without a lock or a map; the turn distinguishes the messages of one place. A place is free again only once its message was answered. So a
// turn below the current one was answered, and one above it was never sent.
type call[Resp any] struct {
	place int
	// word holds turn<<stateBits | state, so that both change in one step.
	word atomic.Uint64
	// done carries the last response to the caller. Invariant: it is empty whenever
	// a turn begins, and receives at most one response per turn.
	done chan Resp
	// parts are the responses before the last; the receiver's until done got the last.
	parts []Resp
}

// The state of the current turn.
const (
	stateAnswered  uint64 = iota // also before the first turn
	statePending                 // a caller waits for the answer
	stateAbandoned               // the caller has gone, the answer is still due
	stateFailed                  // the stream broke; there will be no answer

	stateBits = 2
	stateMask = 1<<stateBits - 1
)

// begin starts the next turn and returns its number. Only the owner of the
// place may call it.
func (c *call[Resp]) begin() (turn uint64) {
	c.parts = nil
	turn = c.word.Load()>>stateBits + 1
	c.word.Store(turn<<stateBits | statePending)
	return turn
}

// move changes the state of the turn, and reports whether it was in the state from.
func (c *call[Resp]) move(turn, from, to uint64) bool {
	return c.word.CompareAndSwap(turn<<stateBits|from, turn<<stateBits|to)
}

// now returns the present turn and its state.
func (c *call[Resp]) now() (turn, state uint64) {
	w := c.word.Load()
	return w >> stateBits, w & stateMask
}

// due reports whether the answer to the present turn is still due.
func (c *call[Resp]) due() (turn uint64, ok bool) {
	turn, state := c.now()
	return turn, state == statePending || state == stateAbandoned
}

func formatID(place int, turn uint64) string {
	var buf [40]byte
	b := strconv.AppendInt(buf[:0], int64(place), 10)
	b = append(b, '-')
	return string(strconv.AppendUint(b, turn, 10))
}

// parseID is the inverse of formatID; it takes only what formatID writes.
func parseID(id string) (place int, turn uint64, ok bool) {
	left, right, ok := strings.Cut(id, "-")
	if !ok || !canonical(left) || !canonical(right) {
		return 0, 0, false
	}
	p, err := strconv.ParseUint(left, 10, 31)
	if err != nil {
		return 0, 0, false
	}
	turn, err = strconv.ParseUint(right, 10, 64-stateBits)
	return int(p), turn, err == nil && turn > 0
}

func canonical(number string) bool {
	return number == "0" || (number != "" && number[0] >= '1' && number[0] <= '9')
}
