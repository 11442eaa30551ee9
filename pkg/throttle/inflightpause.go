package throttle

import (
	"time"
)

// pausesChanged applies the pauses in force at now. The lock is held.
func (f *InFlight) pausesChanged(now int64) {
	f.stopped.Store(f.gate.Pauses.Until)
	if f.tags != nil {
		f.tags.putPauses()
	}
	f.noteHeld()
	f.serve()
	f.rouse(now)
}

// rouse wakes the waiters, so that those with deadlines before the end of the pause fail, and sets a timer for it. The lock is held.
func (f *InFlight) rouse(now int64) {
	if f.waker != nil {
		f.waker.Stop()
		f.waker = nil
	}
	if !f.gate.Pauses.Holds(now) {
		return
	}
	for w := range f.queue.All() {
		w.Attempt.Wake()
	}
	if left, known := f.gate.PauseLeft(now); known {
		f.waker = f.gate.AfterFunc(left, f.onPauseOver)
	}
}

func (f *InFlight) onPauseOver() {
	f.gate.Lock()
	defer f.gate.Unlock()
	f.noteHeld()
	f.serve()
	f.rouse(f.gate.Now())
}

// HoldUp returns what holds calls back now; ok is false if nothing does.
func (f *InFlight) HoldUp() (h Throttling, ok bool) {
	th, held := f.Throttled()
	h = Throttling{Reason: th.Reason, Limit: th.Limit, Waiting: th.Waiting, RetryAfter: th.RetryAfter, Frozen: th.Frozen, Paused: th.Paused}
	if f.tags != nil {
		f.gate.Lock()
		if most := f.tags.holding(); most != nil {
			h.Reason, h.Tag, h.OfTag, h.Waiting, h.Tags, held = ReasonQuota, most.name, true, f.queue.Len, len(f.tags.waiting), true
			h.Blocked, h.Rate = most.quota.Blocked, float64(most.quota.Total)
		}
		f.gate.Unlock()
	}
	if h.Waiting > 0 {
		h.Longest = time.Duration(f.gate.Waits.Held(f.gate.Now()))
	}
	return h, held
}
