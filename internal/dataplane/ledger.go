package dataplane

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A ledger accounts for the offsets of a source.
type ledger struct {
	mu            sync.Mutex
	open          map[string]bool // read and not settled
	counted       SourceStats     // all but Outstanding
	acked, nacked int
}

// read enters an offset; false when it is open already.
func (l *ledger) read(o Offset) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := o.String()
	if l.open[id] {
		return false
	}
	l.open[id] = true
	l.counted.Messages++
	return true
}

func (l *ledger) ended(messages int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counted.Reads++
	if messages == 0 {
		l.counted.EmptyReads++
	}
	l.counted.LongestRead = max(l.counted.LongestRead, took)
}

func (l *ledger) settle(offsets []Offset, how *int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range offsets {
		if id := o.String(); l.open[id] {
			delete(l.open, id)
			*how++
		} else {
			l.counted.Adopted++
		}
	}
}

func (l *ledger) stats() SourceStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.counted
	s.Acked, s.Nacked, s.Outstanding = l.acked, l.nacked, len(l.open)
	return s
}

func (l *ledger) outstanding() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.open))
}

func offsetIDs(offsets []Offset) []string {
	ids := make([]string, len(offsets))
	for i, o := range offsets {
		ids[i] = o.String()
	}
	return ids
}
