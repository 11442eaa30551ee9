//go:build numathrottle_faults

package chaos

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// TestStrictFaults breaks real stores under pools of real processes whose limit is
// strict: each call has a slot of its own, which the store has issued.
func TestStrictFaults(t *testing.T) {
	t.Parallel() // with the other stores: nearly all of it is waiting
	g := newLedger(t, "R10", fmt.Sprintf("processes of this module with a strict limit, on %s and on three nats-server %s",
		redisVersion(t), server.VERSION))
	outages := &spans{}
	sum := &strictness{}
	t.Run("lanes", func(t *testing.T) {
		for name, lane := range map[string]func(*testing.T, *ledger) *lane{
			"kept": strictKeptLane, "lost": strictLostLane, "promoted": strictPromotedLane,
			"nats": func(t *testing.T, g *ledger) *lane { return strictNATSLane(t, g, outages) },
		} {
			t.Run(name, func(t *testing.T) {
				inTurn(t)
				l := lane(t, g)
				require.Positive(t, l.strict.watched, "the store was never away for longer than what may be reserved")
				sum.add(&l.strict)
			})
		}
	})
	outages.note(g, "no writes at a fault, JetStream")
	g.note("calls nearer to one another than their slots are, by at most",
		fmt.Sprintf("%s of the %s of a validity", sum.nearest.Round(time.Millisecond), wire.Validity(time.Millisecond)))
	g.note("time without the store after all that could be reserved was over", fmt.Sprintf("%s, calls in it: %d",
		sum.watched.Round(100*time.Millisecond), sum.stray))
	g.record(t, "strict")
}

// strictKeptLane has a server that forgets nothing, and slots that are never reserved ahead.
func strictKeptLane(t *testing.T, g *ledger) *lane {
	server := testenv.Redis(t, servers.WithAppendOnly())
	l := newLane(t, g, poolConfig{Stores: everyone("redis://" + server.Addr() + "?durable=true"), Max: 5, Strict: true})
	l.run(
		killed(server, "strict: server killed, state kept", stateKept, 1500*time.Millisecond, 3*time.Second),
		killed(server, "strict: server killed for longer than a lease, state kept", stateKept, 4*time.Second, 6*time.Second),
		stopped(server, "strict: server stopped", 1500*time.Millisecond, 3*time.Second),
	)
	return l
}

// strictLostLane has a server that forgets everything when it ends, slots that were
// reserved ahead included.
func strictLostLane(t *testing.T, g *ledger) *lane {
	server := testenv.Redis(t)
	l := newLane(t, g, poolConfig{Stores: everyone("redis://" + server.Addr()), Max: 20, Strict: true, MaxReserved: 10})
	l.run(
		killed(server, "strict: server restarted empty", l.lost(), 1500*time.Millisecond, 2500*time.Millisecond),
		flushed(server, "strict: FLUSHALL", l.lost()),
	)
	return l
}

// strictPromotedLane has a master and a replica under sentinels, and slots so far apart that
// no two calls come together.
func strictPromotedLane(t *testing.T, g *ledger) *lane {
	s := testenv.RedisSentinel(t, 1)
	url := fmt.Sprintf("redis+sentinel://%s/%s", s.Addrs()[0], s.MasterName())
	l := newLane(t, g, poolConfig{Stores: everyone(url), Max: 2, Strict: true, MaxReserved: 1})
	f := promoted(s, l.lost())
	f.name = "strict: " + f.name
	l.run(f)
	return l
}

// strictNATSLane has three JetStream servers, of which the leader fails.
func strictNATSLane(t *testing.T, g *ledger, outages *spans) *lane {
	l := newNATSLane(t, g, outages, poolConfig{Max: 5, Strict: true, MaxReserved: 2})
	l.run(leaderKilled, leaderStopped, leaderCutOff)
	return l.lane
}

// A strictness is what a strict lane has seen.
type strictness struct {
	mu sync.Mutex // for add
	// nearest is by how much calls came nearer to one another than their slots.
	nearest time.Duration
	// watched is for how long the store was away after everything reserved was over,
	// stray how many calls were granted meanwhile.
	watched time.Duration
	stray   int
}

func (s *strictness) add(o *strictness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nearest, s.watched, s.stray = max(s.nearest, o.nearest), s.watched+o.watched, s.stray+o.stray
}

// judgeStrict looks at the distances of all calls that are remembered, and at the windows.
func (l *lane) judgeStrict(after string) []proof.Window {
	spacing := l.pool.spacing()
	near := nearest(grants(l.pool.service.since(0), nil), spacing)
	worst := l.pool.judge()
	l.ledger.addWindows(worst)
	l.strict.nearest = max(l.strict.nearest, near)
	// A stamp is taken after the grant: one late stamp makes the next look near.
	if allowed := wire.Validity(spacing) + l.stalls.ran().Duration; near > allowed {
		l.ledger.brokenf(l, l.replay, "%s: calls came nearer by %s than their slots, which are %s apart; allowed are %s",
			after, near, spacing, allowed)
	}
	return worst
}

// judgeAway looks for calls that were granted while the store was away, when all slots
// that had been reserved were over.
func (l *lane) judgeAway(during string) {
	from := l.gone + time.Duration(l.pool.MaxReserved)*l.pool.spacing() + wire.Validity(l.pool.spacing()) + standstill
	if from >= l.back {
		return
	}
	l.strict.watched += l.back - from
	stray := between(grants(l.pool.service.since(from), nil), from, l.back)
	l.strict.stray += stray
	if stray > 0 {
		l.ledger.brokenf(l, l.replay, "%s: %d calls were granted without the store, from %s after it had gone on",
			during, stray, from-l.gone)
	}
}
