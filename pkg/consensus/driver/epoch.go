package driver

import (
	"slices"
	"time"
)

// maxSilence bounds the recorded silence, so that no arithmetic on it overflows.
const maxSilence = time.Microsecond << 52

// silence returns how long no step was recorded before this one, on the store's own clock. On a Deferred store it is that of the step
// before.
func (st *step) silence() time.Duration {
	if st.rec.Wall == 0 {
		return 0
	}
	return time.Duration(min(max(st.at.Now-st.rec.Wall, 0), maxSilence.Microseconds())) * time.Microsecond
}

// enterEpoch records when the pool began, in a step that records a processor's first request or shows that the store has forgotten
// something.
func (st *step) enterEpoch(forgot bool, silence time.Duration) {
	r := st.rec
	switch {
	case forgot:
		// The pool is older than the record, or another one.
		r.Epoch, r.Silence, r.EpochUnstamped = 0, 0, false
	case slices.ContainsFunc(r.Rows, func(row Row) bool { return row.State == RowLive }):
	case st.at.Deferred:
		r.EpochUnstamped = true
	default:
		st.beginEpoch(silence)
	}
}

// beginEpoch records that the pool began at the time of the step. No two lives of a pool begin at the same time, though the logical clock
// may stand still between them.
func (st *step) beginEpoch(silence time.Duration) {
	r := st.rec
	r.Epoch, r.Silence, r.EpochUnstamped = max(st.clock, r.Epoch+1), silence, false
}
