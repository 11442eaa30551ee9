package consensus

import (
	"context"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var _ throttle.Listener = (*Member)(nil)

// A told is what the called service has said to this processor about when to come back,
// and to others. It is a part of ceiling.
type told struct {
	end    time.Duration // local time
	reason string
	done   bool  // the pool was paused for it
	others int64 // the latest logical time that others were told
	live   int   // processors in the pool
}

// until is what the processor tells the others: the logical time until which it was told to
// wait; 0: it was not.
func (t *told) until(logical int64, now time.Duration) int64 {
	if t.end <= now {
		return 0
	}
	return min(logical+(t.end-now).Microseconds(), MaxMicros)
}

// aloneWord begins the word of a note that says until when the called service wants to be
// left alone by the processor: a logical time, to base 36.
const aloneWord = "t:"

// aloneIn returns what such a word says; 0 if there is none.
func aloneIn(more []string) (int64, bool) {
	for _, w := range more {
		if value, found := strings.CutPrefix(w, aloneWord); found {
			n, ok := numeral(value, 36, MaxMicros)
			return n, ok && n > 0
		}
	}
	return 0, true
}

// aloneOf reads the word of a note, whether or not it tells a limit. 0: there is none.
func aloneOf(words, more []string) int64 {
	if len(words) != 6 && len(words) != 1 {
		return 0
	}
	if n, ok := aloneIn(more); ok {
		return n
	}
	return 0
}

// few is how many processors a pool has at most in which one is believed alone.
const few = 2

// Told takes what the called service has said to this processor: not to come back before
// end, in local time. An end that is hardly later than the one before is no news.
func (p *Processor) Told(now, end time.Duration, reason string) {
	t := &p.ceiling.told
	if end <= now || end-t.end <= slack(end-now) {
		return
	}
	t.end, t.reason, t.done = end, reason, false
	if p.state == StateHolding || p.state == StateLost {
		p.urgency = urgencyNow
	}
}

// PauseTold tells whether the pool should be paused for what this processor was told, and until
// when: as long as another was told to wait as well, so that no processor alone keeps the pool
// waiting; or until its own end where there are at most two. It says so once.
func (p *Processor) PauseTold(now time.Duration) (end time.Duration, reason string, due bool) {
	c := &p.ceiling
	t := &c.told
	if t.done || t.end <= now || c.answers == 0 || t.live > few && t.others <= c.logical(now) {
		return 0, "", false
	}
	t.done = true
	end = t.end
	if t.live > few {
		end = min(end, now+time.Duration(t.others-c.logical(now))*time.Microsecond)
	}
	return end, t.reason, true
}

// Told implements throttle.Listener.
func (m *Member) Told(until time.Time, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p.state == StateLeft {
		return
	}
	now := m.now()
	m.p.Told(now, now+time.Until(until), reason)
	m.judge()
	m.Poke() // the others should know
}

// judge pauses the pool if the called service has asked for it in a way that is believed. m.mu is held.
func (m *Member) judge() {
	now := m.now()
	end, reason, due := m.p.PauseTold(now)
	if !due || m.p.state == StateLeft {
		return
	}
	until := m.base.Add(end)
	m.judging.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*SyncTimeout(MinLease))
		defer cancel()
		go func() {
			select {
			case <-m.quit:
				cancel()
			case <-ctx.Done():
			}
		}()
		if _, err := m.Pause(ctx, until, reason, throttle.WaitForReceipts(0)); err != nil && ctx.Err() == nil {
			m.log.Warn("the pause that the called service asked for is not on record yet", "error", err, "until", until)
		}
	})
}
