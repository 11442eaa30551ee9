//go:build numathrottle_faults

package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// TestOverrideFaults changes the limit of pools of real processes while their stores
// break.
func TestOverrideFaults(t *testing.T) {
	t.Parallel() // with the other stores: nearly all of it is waiting
	g := newLedger(t, "R4", fmt.Sprintf("processes of this module whose limit is overridden, on %s and on three nats-server %s",
		redisVersion(t), server.VERSION))
	outages := &spans{}
	t.Run("lanes", func(t *testing.T) {
		for name, lane := range map[string]func(*testing.T, *ledger){
			"kept": overriddenKeptLane, "lost": overriddenLostLane, "one cut off": overriddenCutOffLane,
			"nats": func(t *testing.T, g *ledger) { overriddenNATSLane(t, g, outages) },
		} {
			t.Run(name, func(t *testing.T) {
				inTurn(t)
				lane(t, g)
			})
		}
	})
	outages.note(g, "no writes at a fault, JetStream")
	g.record(t, "overrides")
}

// overriddenKeptLane has a server that forgets nothing: the override is saved as soon as it
// can be.
func overriddenKeptLane(t *testing.T, g *ledger) {
	server := testenv.Redis(t, servers.WithAppendOnly())
	url := "redis://" + server.Addr() + "?durable=true"
	l := newOverrideLane(newLane(t, g, poolConfig{Stores: everyone(url)}), url)
	l.run(
		killed(server, "override saved while the server was killed, state kept", stateKept, 300*time.Millisecond, 2*time.Second),
		stopped(server, "override saved while the server was stopped", 500*time.Millisecond, 2*time.Second),
	)
}

// overriddenLostLane has a server that forgets the override when one of the processors
// at least has heard of it.
func overriddenLostLane(t *testing.T, g *ledger) {
	server := testenv.Redis(t)
	url := "redis://" + server.Addr()
	l := newOverrideLane(newLane(t, g, poolConfig{Stores: everyone(url)}), url)
	l.early = true
	l.run(
		killed(server, "override saved, server restarted empty", l.lost(), 300*time.Millisecond, 2*time.Second),
		flushed(server, "override saved, FLUSHALL", l.lost()),
	)
}

// overriddenCutOffLane has a network that keeps the override from one of the processors.
func overriddenCutOffLane(t *testing.T, g *ledger) {
	plain, server, ways := newNetwork(t, g)
	l := newOverrideLane(plain, "redis://"+server.Addr())
	faults := networkFaults(ways[:1], "one")
	for i := range faults {
		faults[i].name = "override saved, " + faults[i].name
	}
	l.run(faults...)
}

// overriddenNATSLane has three JetStream servers, of which the leader fails while the
// override is saved.
func overriddenNATSLane(t *testing.T, g *ledger, outages *spans) {
	cluster := newNATSLane(t, g, outages, poolConfig{})
	l := newOverrideLane(cluster.lane, cluster.url)
	var faults []fault
	for _, f := range []natsFault{leaderKilled, leaderCutOff} {
		faults = append(faults, cluster.fault(&f, "override saved, "+f.name))
	}
	l.run(faults...)
}

// fault turns a fault of the leader into one of the store, from which the pool recovers when
// the cluster takes writes again.
func (l *natsLane) fault(f *natsFault, name string) fault {
	var leader *servers.NATSNode
	return fault{
		name: name, allowed: l.lost(),
		inject: func(*lane) {
			leader = l.whole()
			l.probe.avoid(leader)
			began := clock()
			f.inject(l, leader)
			_, outage := l.probe.outage(l, began, clock())
			l.outages.add(outage)
		},
		late: func(reachable, took time.Duration) time.Duration { return l.late(name, reachable, took) },
		repair: func(*lane) {
			f.repair(l, leader)
			l.whole()
		},
	}
}

// An overrideLane is a lane in which every fault meets an override that is saved.
type overrideLane struct {
	*lane
	store driver.Store
	// early says that the override is saved, and heard of by somebody, before the fault.
	early bool
	// changes are the limits that were in force, the first one included, and since when.
	changes []change
}

type change struct {
	at    time.Duration
	limit int
}

// largest is the largest limit that was in force after a moment.
func (l *overrideLane) largest(from time.Duration) int {
	most := 0
	for i, c := range l.changes {
		if i == len(l.changes)-1 || l.changes[i+1].at > from {
			most = max(most, c.limit)
		}
	}
	return most
}

// newOverrideLane makes one of a lane. The URL is that of the store for whoever saves.
func newOverrideLane(l *lane, url string) *overrideLane {
	l.Helper()
	store, closeStore, err := openStore(url, l.pool.Longest, slog.New(slog.DiscardHandler))
	require.NoError(l, err)
	l.Cleanup(closeStore)
	return &overrideLane{lane: l, store: store}
}

// run goes through the faults in random order, as often as there are rounds. The limit
// rises and falls in turn.
func (l *overrideLane) run(faults ...fault) {
	defer l.ledger.addPool(l.pool)
	l.start()
	raise := l.rng.IntN(2) == 0
	for range rounds(l) {
		for _, i := range l.rng.Perm(len(faults)) {
			limit := 50 + l.rng.IntN(100)
			if raise {
				limit += 200
			}
			raise = !raise
			if !l.suffer(faults[i], limit) {
				return
			}
		}
	}
}

// suffer goes through one fault with a change of the limit, and judges.
func (l *overrideLane) suffer(f fault, limit int) bool {
	before, from := l.pool.Max, clock()
	if len(l.changes) == 0 {
		l.changes = append(l.changes, change{0, before})
	}
	l.changes = append(l.changes, change{from, limit})
	took, ok := l.fairly(&f, func() (time.Duration, bool) {
		took, ok := l.once(f, limit)
		if ok && f.repair != nil {
			f.repair(l.lane)
		}
		return took, ok
	})
	l.ledger.addWindows(l.judgeSince(from, f.name, max(before, limit)))
	// Some windows that are looked at begin before the last change, and the one before it.
	l.pool.bound = l.boundOf(l.largest(l.pool.kept))
	l.judge(f.name)
	l.Logf("%s: from %d to %d, in force and in use after %.2fs", f.name, before, limit, took.Seconds())
	l.ledger.addFault(f.name, took, f.allowed)
	switch {
	case !ok:
		l.ledger.brokenf(l, l.replay, "%s: the override from %d to %d is not in force on all processors after %s", f.name, before, limit, took)
		return false
	case took > f.allowed:
		l.ledger.brokenf(l, l.replay, "%s: the override from %d to %d was in force and in use after %s, allowed is %s", f.name, before, limit, took, f.allowed)
	}
	l.judgeAfter(f.name, limit)
	return true
}

// once saves the override with a fault, and returns how long after it both were over that
// was on every processor, and all of it in use.
func (l *overrideLane) once(f fault, limit int) (took time.Duration, ok bool) {
	saved := make(chan error, 1)
	began := clock()
	if l.early {
		require.NoError(l, l.save(limit))
		l.until("a processor has heard of the override", func(context.Context) error {
			for _, u := range l.pool.service.since(began) {
				if u.ceiling == limit {
					return nil
				}
			}
			return fmt.Errorf("nobody tells %d", limit)
		})
		saved <- nil
	} else {
		delay := l.between(0, 500*time.Millisecond)
		go func() {
			l.pass(delay)
			saved <- l.save(limit)
		}()
	}
	f.inject(l.lane)
	require.NoError(l, <-saved)
	over := clock()
	l.pool.Max = limit
	for {
		uses := l.pool.service.since(began)
		at, known := inForce(uses, limit, len(l.pool.workers))
		if known {
			inUse, drew := l.pool.recovery(over, f.allowed+patience)
			return f.sinceServed(over, max(inUse, at-over)), drew
		}
		if clock() > over+f.allowed+patience {
			return f.sinceServed(over, clock()-over), false
		}
		l.pass(5 * recoveryStep)
	}
}

// save saves the override, as soon as the store takes it.
func (l *overrideLane) save(limit int) error {
	const longest, once = 60 * time.Second, time.Second
	deadline := clock() + longest
	for {
		ctx, cancel := context.WithTimeout(l.Context(), once)
		err := protocol.SaveOverride(ctx, l.store, poolName, protocol.Override{Max: limit, Per: time.Second})
		cancel()
		if err == nil || clock() > deadline {
			return err
		}
		l.pass(recoveryStep)
	}
}

// judgeAfter looks at windows in which only the new limit was in force.
func (l *overrideLane) judgeAfter(after string, limit int) {
	const soon, long = 100 * time.Millisecond, 1500 * time.Millisecond
	from := clock() + soon // a call tells its limit a moment before that is in force
	l.pass(soon + long)
	l.judgeSince(from, after, limit)
	for _, u := range l.pool.service.since(from) {
		if u.ceiling != limit {
			l.ledger.brokenf(l, l.replay, "%s: worker %d goes by a limit of %d, not of %d", after, u.worker, u.ceiling, limit)
			return
		}
	}
}

// judgeSince looks at windows after a moment since when no limit above this one was in force.
func (l *overrideLane) judgeSince(from time.Duration, after string, limit int) []proof.Window {
	worst := l.boundOf(limit).windows(grants(l.pool.service.since(from), nil))
	for _, w := range worst {
		if w.Worst > 1 {
			l.ledger.brokenf(l, l.replay, "%s: %v calls were granted within %s with no limit above %d in force, allowed are %v",
				after, w.Tokens, w.Length, limit, w.Allowed)
		}
	}
	return worst
}

// boundOf is the pool's bound with another limit: the burst is in proportion.
func (l *overrideLane) boundOf(limit int) bound {
	configured := l.pool.poolConfig
	return bound{Max: limit, Burst: (configured.Burst*limit + configured.Reported - 1) / configured.Reported, Processors: len(l.pool.workers)}
}

// inForce returns the time of the last call by another limit than this one, when each of so
// many workers has called by this one since. The calls are in the order of their arrival.
func inForce(uses []use, limit, workers int) (at time.Duration, ok bool) {
	reported := map[int]bool{}
	for _, u := range uses {
		if u.ceiling != limit {
			at = u.granted
			clear(reported)
			continue
		}
		reported[u.worker] = true
	}
	return at, len(reported) == workers
}
