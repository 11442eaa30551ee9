package throttle

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// rampEvery is how often a moving ceiling is updated.
const rampEvery = 100 * time.Millisecond

// A localRamp moves the ceiling of a Throttle with a fixed share: without a pool, or with Replicas. It is the ramp of this processor alone;
// it starts from Min when the Throttle is made.
type localRamp struct {
	t     *rateLimiter
	law   ceiling.Law
	share int64
	flow  sharing.Usage
	at    time.Duration
	timer sharing.Timer
}

// fixed puts a share without an end in force, and ramps if the limit does.
func (t *rateLimiter) fixed(share int64) {
	if !t.limit.Ramps() {
		t.setLease(limit.Lease{Share: share})
		return
	}
	config := t.limit.ceilingConfig()
	config.Adapts = false // refusals reduce this separately; see backoff.go
	r := &localRamp{t: t, law: ceiling.Law{Config: config}, share: share}
	t.ramp = r
	again := r.step()
	t.gate.Lock()
	defer t.gate.Unlock()
	r.timer = t.gate.AfterFunc(rampEvery, r.onTimer)
	if !again {
		r.timer.Stop()
	}
}

// stop ends the ramp. The lock is held.
func (r *localRamp) stop() {
	if r != nil {
		r.timer.Stop()
	}
}

func (r *localRamp) onTimer() {
	again := r.step()
	r.t.gate.Lock()
	defer r.t.gate.Unlock()
	if again && !r.t.gate.Closed.Load() {
		r.timer.Reset(rampEvery)
	}
}

// step moves the ceiling to the present. It returns false if the ceiling cannot move any more. Only one goroutine calls it at a time.
func (r *localRamp) step() (again bool) {
	now := time.Duration(r.t.gate.Now())
	report, _ := r.t.activity(0, false)
	flow := report.Usage
	used, offered := flow.Since(r.flow, now-r.at, r.t.limit.Max, r.t.limit.Per)
	r.flow, r.at = flow, now
	// A falling ceiling is in force before it has fallen, a rising one after it has risen.
	at := r.law.Alone(ramp.Step{Now: now.Microseconds(), Used: used, Offered: offered, Halted: offered == 0}, (now + 2*rampEvery).Microseconds())
	r.t.setLease(limit.Lease{Share: int64(float64(r.share) * at / float64(r.t.limit.Max)), Ceiling: at})
	return r.law.Moves()
}
