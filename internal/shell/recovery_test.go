package shell

import (
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// heal ends every fault, makes all busy, and waits for the pool to be whole again.
func (w *world) heal(res *result) {
	w.calmDown()
	lease := slices.Max(w.plan.leases)
	interval := wire.Interval(lease, w.plan.processors)
	limit := 2*wire.Removal(w.plan.longest) + 3*interval
	if w.plan.storeRate < 1 { // its removal time is longer for all others
		limit = time.Duration(float64(limit) / w.plan.storeRate)
	}
	looks, first := 0, time.Duration(0)
	for since := time.Duration(0); looks < 10; since = w.now() - w.calmAt {
		w.run(w.calmAt + since + interval/4)
		w.look()
		since = w.now() - w.calmAt
		why := w.unwhole()
		switch {
		case why == "" && looks == 0:
			first = since
			looks++
		case why == "":
			looks++
		case since > limit:
			w.violatef(breachRecovery, "%v after the last fault: %s", since, why)
			return
		default:
			looks = 0
		}
	}
	res.recovered = first
	w.tracef("whole again after %v", first)
	w.judgeUse()
}

// calmDown ends the faults: what is late is lost, the store answers. Of the processes with one ID the newest remains; what is
// missing joins.
func (w *world) calmDown() {
	w.calm, w.calmAt = true, w.now()
	w.calmed.Store(true)
	w.tracef("the faults are over")
	if w.flight != nil {
		w.flight.calm(errCalm)
	}
	for _, s := range w.servers() {
		hung := false
		s.set(func() {
			hung, s.silent, s.refuses, s.calmed = s.hung, false, false, time.Now()
			if s.deaf {
				s.deaf = false
				s.lives++
			}
		})
		if hung {
			s.resume(w.r)
		}
	}
	seen := map[string]bool{}
	for _, p := range slices.Backward(slices.Clone(w.live)) {
		if seen[p.id] || len(seen) == w.plan.processors {
			w.end(p, true)
			continue
		}
		seen[p.id] = true
		for _, l := range p.links() {
			l.calm()
		}
		p.mode.Store(int32(modeCalm))
	}
	for len(w.live) < w.plan.processors {
		w.join(w.newID())
	}
}

// unwhole says what is still wrong with the pool, or nothing.
func (w *world) unwhole() string {
	n := driver.Share(len(w.live))
	var sum driver.Share
	issuing := 0
	for _, p := range w.live {
		share := driver.Share(p.th.Status().Lease.Share)
		v := p.member.View()
		if v.Issuing && v.Frozen == 0 {
			issuing++
			continue
		}
		if v.Degraded || v.State != string(protocol.StateHolding) || share*n*100 < driver.Whole*95-100*n || share*n*100 > driver.Whole*105 {
			return fmt.Sprintf("%s holds %v and is %s (degraded %v, frozen %v %s), %v is even", p.id, share, v.State, v.Degraded, v.Frozen, v.FrozenBy,
				driver.Whole/n)
		}
		sum += share
	}
	switch {
	case issuing == len(w.live):
	case sum < driver.Whole/100*99:
		return fmt.Sprintf("%v in use", sum)
	}
	if w.flight != nil {
		return w.lackingSlots()
	}
	return ""
}

// judgeUse judges that the limit is used. Each processor's rate is taken from its
// first grant to its last, for it has its callers wait all the time: what it earns in
// between is what it grants.
func (w *world) judgeUse() {
	// Long enough for several draws of each, and for paying what it owes.
	per := w.plan.perSecond() / float64(len(w.live))
	debt := 0.0
	for _, p := range w.live {
		debt = max(debt, -p.th.Status().Tokens)
	}
	length := max(10*time.Second, time.Duration((4*float64(w.plan.largest)+debt)/per*float64(time.Second)))
	from := w.now()
	w.flight.watch()
	w.run(from + length)
	w.judgeFlight(length)
	if w.live[0].member.View().Issuing {
		w.judgeIssued(from, length)
		return
	}
	sum := 0.0
	for _, p := range w.live {
		sum += p.rate(from)
	}
	if used := sum / w.plan.perSecond(); used < 0.99 {
		w.violatef(breachRecovery, "%.4f of the limit is used in %v with all busy", used, length)
	}
}

// judgeIssued judges that nearly all slots are used; a processor may have collected most
// of a draw by the end.
func (w *world) judgeIssued(from, length time.Duration) {
	tokens := len(w.live) * w.plan.largest
	for _, p := range w.live {
		p.mu.Lock()
		for _, g := range p.grants {
			if g.at >= from {
				tokens += int(g.n)
			}
		}
		p.mu.Unlock()
	}
	slots := w.plan.perSecond() * min(1, w.plan.storeRate) * length.Seconds()
	if float64(tokens) < 0.9*slots {
		w.violatef(breachRecovery, "%d of %.0f slots are used in %v with all busy", tokens, slots, length)
	}
}

// rate is how many tokens per second the process granted between its first and its
// last grant since a time.
func (p *process) rate(from time.Duration) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := len(p.grants)
	tokens := 0
	for i > 0 && p.grants[i-1].at >= from {
		i--
		tokens += int(p.grants[i].n)
	}
	if len(p.grants)-i < 2 {
		return 0
	}
	first, last := p.grants[i], p.grants[len(p.grants)-1]
	return float64(tokens-int(first.n)) / (last.at - first.at).Seconds()
}
