package consensus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// News of a pause may be written by the clock of a store that has begun anew, of which the processor has heard nothing
// yet: the pause counts from when it is heard, whatever the clocks say. Heard once more, it does not last longer.
func TestNewsByAnotherClock(t *testing.T) {
	for name, at := range map[string]int64{"far behind": 1, "far ahead": 1 << 50, "its own": 5_000_000_000, "none": 0} {
		t.Run(name, func(t *testing.T) {
			p := &pausing{}
			heard := moment{now: 10 * time.Second, logical: 5_000_000_000, clamp: time.Second}
			news := &notice{entries: []entry{{at: at, left: 5 * time.Second, reason: "told"}}}
			p.hear(heard, 7, news)
			require.Len(t, p.inForce(heard.now+4*time.Second), 1)
			again := heard
			again.now += 4 * time.Second
			p.hear(again, 7, news)
			require.Empty(t, p.inForce(heard.now+5*time.Second))
		})
	}
}

// A store that was emptied has another clock, by which what was written before may look as if it were over; and it may be
// given back pauses by a processor that had not heard of the newest. Who knows of that goes on, and asks for it again.
func TestAPauseOutlastsTheStoresClock(t *testing.T) {
	const at = int64(5_000_000_000)
	recorded := func(v Version, pauses string) book {
		return book{Document: Document{Name: pauseDocument, Version: v, Body: []byte(`{"pauses":[` + pauses + `],"resumed":1}`)}}
	}
	for name, c := range map[string]struct {
		logical, began int64
		slept          time.Duration
		paused         bool
	}{
		"goes on":                  {at + 2_000_000, 0, 0, true},
		"far ahead":                {at + 9_000_000_000, 0, 0, true},
		"far behind":               {1, 0, 0, true},
		"the pool slept meanwhile": {at + 2_000_000, at + 1_000_000, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pausing{}
			m := moment{now: 10 * time.Second, logical: at, clamp: time.Second}
			p.take(m, m.now, recorded(7, `{"at_us":5000000000,"left_us":40000000,"reason":"told"}`))
			require.Len(t, p.inForce(m.now), 1)
			m = moment{now: 12 * time.Second, logical: c.logical, began: c.began, slept: c.slept, clamp: time.Second}
			p.take(m, m.now, recorded(8, ""))
			require.Equal(t, c.paused, len(p.inForce(m.now)) == 1)
			require.Equal(t, c.paused, len(p.wishes) == 1, "it is asked for again")
		})
	}
}
