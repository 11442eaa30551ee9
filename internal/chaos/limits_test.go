//go:build numathrottle_faults

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// TestLimitFaults breaks real stores under pools of real processes whose limit is hard, rises in a ramp, or is
// one of calls in flight, also of a tag.
func TestLimitFaults(t *testing.T) {
	t.Parallel() // with the other stores: nearly all of it is waiting
	g := newLedger(t, "R4", fmt.Sprintf("processes of this module with a hard limit, a ramp or calls in flight, on %s and on three nats-server %s",
		redisVersion(t), server.VERSION))
	outages := &spans{}
	most := 0
	var mu sync.Mutex // for most
	count := func(l *lane) {
		mu.Lock()
		defer mu.Unlock()
		most = max(most, l.most)
	}
	t.Run("lanes", func(t *testing.T) {
		lanes := map[string]func(*testing.T, *ledger){
			"hard": hardLane, "ramp": rampLane,
			"in flight":       func(t *testing.T, g *ledger) { count(inFlightLane(t, g)) },
			"in flight, nats": func(t *testing.T, g *ledger) { count(limitNATSLane(t, g, outages, "in flight: ", inFlight)) },
			"tag in flight":   func(t *testing.T, g *ledger) { count(limitLane(t, g, "tag in flight: ", tagInFlight)) },
		}
		if rounds(t) > 1 { // in the short form there are clusters enough beside these
			lanes["hard, nats"] = func(t *testing.T, g *ledger) { limitNATSLane(t, g, outages, "hard: ", hard) }
			lanes["tag in flight, nats"] = func(t *testing.T, g *ledger) {
				count(limitNATSLane(t, g, outages, "tag in flight: ", tagInFlight))
			}
			lanes["ramp, nats"] = func(t *testing.T, g *ledger) { limitNATSLane(t, g, outages, "ramp: ", rising) }
		}
		for name, lane := range lanes {
			t.Run(name, func(t *testing.T) {
				inTurn(t)
				lane(t, g)
			})
		}
	})
	outages.note(g, "no writes at a fault, JetStream")
	g.note("calls in flight at once, at most", fmt.Sprintf("%d of %d", most, slotsOfLane))
	g.record(t, "limits")
}

// slotsOfLane is how many calls may be in flight, of sixteen that want to be.
const slotsOfLane = 8

// The limits: one that may not be exceeded in any second, with a tenth of it as burst; one that rises from a
// fifth for two minutes, whatever happens to the store; one of calls in flight, and the same as the total of a tag.
var (
	hard     = poolConfig{Hard: true}
	rising   = poolConfig{Min: 40, RampUp: 2 * time.Minute}
	inFlight = poolConfig{Slots: slotsOfLane}

	tagInFlight = poolConfig{Slots: slotsOfLane, OfTag: true}
)

func hardLane(t *testing.T, g *ledger)           { limitLane(t, g, "hard: ", hard) }
func rampLane(t *testing.T, g *ledger)           { limitLane(t, g, "ramp: ", rising) }
func inFlightLane(t *testing.T, g *ledger) *lane { return limitLane(t, g, "in flight: ", inFlight) }

// limitLane breaks a Redis under a pool with the limit of c.
func limitLane(t *testing.T, g *ledger, prefix string, c poolConfig) *lane {
	server := testenv.Redis(t)
	c.Stores = everyone("redis://" + server.Addr())
	l := newLane(t, g, c)
	l.run(storeFaults(server, prefix, l.lost())...)
	return l
}

// limitNATSLane breaks a NATS cluster under a pool with the limit of c.
func limitNATSLane(t *testing.T, g *ledger, outages *spans, prefix string, c poolConfig) *lane {
	l := newNATSLane(t, g, outages, c)
	var faults []fault
	for _, f := range []natsFault{leaderKilled, leaderCutOff} {
		faults = append(faults, l.fault(&f, prefix+f.name))
	}
	l.lane.run(faults...)
	return l.lane
}

// storeFaults are those of a server that forgets everything when it ends. Some last for longer than a lease.
func storeFaults(server *servers.Redis, prefix string, lost time.Duration) []fault {
	return []fault{
		killed(server, prefix+"server restarted empty", lost, 300*time.Millisecond, 6*time.Second),
		flushed(server, prefix+"FLUSHALL", lost),
		stopped(server, prefix+"server stopped", 500*time.Millisecond, 6*time.Second),
	}
}

// restEvery and restFor say when all workers with a hard limit rest.
const (
	restEvery = 2 * time.Second
	restFor   = 500 * time.Millisecond
)

// rest waits until nobody rests.
func rest(now time.Duration) {
	if phase := now % restEvery; phase < restFor {
		time.Sleep(restFor - phase)
	}
}

// rampSlack is for how long a ramp may stand still at a fault beyond the time for which the store is away and the pool then grants
// nothing: what came after the last sync is forgotten.
const rampSlack = 3 * time.Second

// ramp returns the bounds of the ceiling at a moment. It begins to rise with the first sync of the pool.
func (p *pool) ramp(at time.Duration) (lowest, highest float64) {
	rise := func(since time.Duration) float64 {
		return float64(p.Min) + float64(p.Max-p.Min)*min(max(since.Seconds()/p.RampUp.Seconds(), 0), 1)
	}
	lowest = float64(p.Min)
	if p.ready > 0 {
		lowest = rise(at - p.ready - p.away)
	}
	return lowest, rise(at - p.began)
}

// judgeRamp looks at the ceilings that the workers went by, and sets the bound to the present one.
func (l *lane) judgeRamp(after string) {
	if wrong := l.pool.offRamp(l.pool.service.since(l.pool.judged)); wrong != "" {
		l.ledger.brokenf(l, l.replay, "%s: %s", after, wrong)
	}
	_, highest := l.pool.ramp(clock())
	l.pool.bound.Max = int(highest) + 1
}

// offRamp tells which of the calls went by more than the ramp allows, or which worker's last one by less than
// it has come to by then; empty when none did.
func (p *pool) offRamp(uses []use) string {
	last := map[int]use{}
	for _, u := range uses {
		if _, highest := p.ramp(u.granted); float64(u.ceiling) > highest+1 {
			return fmt.Sprintf("worker %d goes by a limit of %d in a ramp that stands at %.1f at most", u.worker, u.ceiling, highest)
		}
		last[u.worker] = u
	}
	for _, u := range last {
		if lowest, _ := p.ramp(u.granted); float64(u.ceiling) < lowest-1 {
			return fmt.Sprintf("worker %d goes by a limit of %d in a ramp that stands at %.1f at least", u.worker, u.ceiling, lowest)
		}
	}
	return ""
}

// slotCall is how long a call in flight lasts.
const slotCall = 40 * time.Millisecond

// hold takes a slot, and gives it back after a while. The service is told from when to when it had it, and
// less rather than more.
func (j *job) hold(ctx context.Context, service *net.UnixConn, limiter throttle.Limiter, _ *leaseWatch) error {
	asked := clock()
	p, err := limiter.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	granted := clock()
	time.Sleep(slotCall)
	u := use{worker: j.Worker, asked: asked, granted: granted, until: clock()}
	p.Settle(1)
	_, err = service.Write(u.encode())
	return err
}

// judgeSlots counts the calls that were in flight at once.
func (l *lane) judgeSlots(after string) []proof.Window {
	most := overlap(l.pool.service.since(0))
	l.most = max(l.most, most)
	l.pool.judge() // forgets
	if most > l.pool.Slots {
		l.ledger.brokenf(l, l.replay, "%s: %d calls were in flight at once, allowed are %d", after, most, l.pool.Slots)
	}
	return nil
}

// overlap returns how many of the uses, each from its grant up to its end, there were at once at most.
func overlap(uses []use) (most int) {
	type edge struct {
		at   time.Duration
		step int
	}
	edges := make([]edge, 0, 2*len(uses))
	for _, u := range uses {
		edges = append(edges, edge{u.granted, 1}, edge{u.until, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	now := 0
	for _, e := range edges {
		now += e.step
		most = max(most, now)
	}
	return most
}
