package gate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A waitsTwin looks at each nanosecond for what its callers wait.
type waitsTwin struct {
	now            int64
	waiting        bool
	began          int64
	outlook        Outlook
	apart          map[limit.Reason]int
	external       int
	spent          map[limit.Reason]time.Duration
	waits, refused map[limit.Reason]int64
}

// reason returns why somebody waits now; empty: nobody does.
func (w *waitsTwin) reason() limit.Reason {
	o := w.outlook
	if w.waiting {
		for _, part := range []struct {
			until int64
			r     limit.Reason
		}{{o.Paused, limit.ReasonPause}, {o.Until, o.During}, {o.Thaw, limit.ReasonFrozen}} {
			if w.now < part.until {
				return part.r
			}
		}
		return o.After
	}
	var most limit.Reason
	for _, r := range limit.Reasons() {
		if w.apart[r] > max(w.apart[most], 0) {
			most = r
		}
	}
	if most == "" && w.external != 0 {
		return limit.ReasonPause
	}
	return most
}

func (w *waitsTwin) pass(ns int64) {
	for range ns {
		if r := w.reason(); r != "" {
			w.spent[r]++
		}
		w.now++
	}
}

func (w *waitsTwin) list() (list []WaitStats) {
	for _, r := range limit.Reasons() {
		if w.waits[r] != 0 || w.refused[r] != 0 || w.spent[r] != 0 {
			list = append(list, WaitStats{r, w.waits[r], w.refused[r], w.spent[r]})
		}
	}
	return list
}

func TestWaitLogMatchesTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	few := []limit.Reason{limit.ReasonLimit, limit.ReasonNoShare, limit.ReasonQuota, limit.ReasonPause}
	one := func() limit.Reason { return few[r.IntN(len(few))] }
	for range testkit.Fewer(5000) {
		var log WaitLog
		w := waitsTwin{
			apart: map[limit.Reason]int{}, spent: map[limit.Reason]time.Duration{}, waits: map[limit.Reason]int64{}, refused: map[limit.Reason]int64{},
		}
		for range 40 {
			w.pass(r.Int64N(6))
			switch r.IntN(8) {
			case 0:
				o := Outlook{w.now + r.Int64N(5) - 1, one(), w.now + r.Int64N(10) - 1, w.now + r.Int64N(15) - 1, one()}
				log.Turn(w.now, true, o)
				if !w.waiting {
					w.began = w.now
				}
				w.waiting, w.outlook = true, o
			case 1:
				log.Idle(w.now)
				w.waiting = false
			case 2:
				reason, more := one(), r.IntN(4)-1
				more = max(more, -w.apart[reason])
				log.Apart(w.now, more, reason)
				w.apart[reason] += more
			case 3:
				from, to := one(), one()
				n := r.IntN(w.apart[from] + 1)
				log.Shift(w.now, n, from, to)
				w.apart[from] -= n
				w.apart[to] += n
			case 4:
				more := max(r.IntN(3)-1, -w.external)
				log.Outside(w.now, more)
				w.external += more
			case 5:
				reason := one()
				log.CountWait(reason)
				w.waits[reason]++
			case 6:
				reason := one()
				log.CountRefusal(reason)
				w.refused[reason]++
				require.Equal(t, w.refused[reason], log.Refusals(reason))
			}
			held, beside := int64(0), w.external
			if w.waiting {
				held = w.now - w.began
			}
			for _, n := range w.apart {
				beside += n
			}
			require.Equal(t, held, log.Held(w.now))
			require.Equal(t, beside, log.Beside())
			if r.IntN(4) == 0 {
				require.Equal(t, w.list(), log.List(w.now))
			}
		}
		require.Equal(t, w.list(), log.List(w.now))
		require.Equal(t, w.list(), log.List(w.now-5), "a clock reading from before")
	}
}

func TestHeldBeforeItBegan(t *testing.T) {
	var log WaitLog
	log.Turn(10, true, Outlook{})
	require.Zero(t, log.Held(7), "a clock reading from before")
	require.Equal(t, int64(3), log.Held(13))
}

func TestOutlookOfALease(t *testing.T) {
	base := time.Now()
	for _, tc := range []struct {
		lease limit.Lease
		want  Outlook
	}{
		{limit.Lease{}, Outlook{After: limit.ReasonNoShare}},
		{limit.Lease{Share: 1}, Outlook{After: limit.ReasonStoreLost}},
		{limit.Lease{Share: 1, Reason: limit.ReasonReplaced}, Outlook{After: limit.ReasonReplaced}},
		{limit.Lease{Reason: limit.ReasonShareTooSmall, Frozen: base.Add(9)}, Outlook{Thaw: 9, After: limit.ReasonShareTooSmall}},
	} {
		tc.want.During, tc.want.Until = limit.ReasonLimit, 5
		require.Equal(t, tc.want, OutlookOf(&tc.lease, base, limit.ReasonLimit, 5))
	}
	r, until := Outlook{After: limit.ReasonNoShare}.At(0)
	require.Equal(t, limit.ReasonNoShare, r)
	require.Equal(t, int64(sharing.Never), until)
}
