//go:build numathrottle_faults

package chaos

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
)

// natsStream holds the pool.
const natsStream = "KV_" + natsstore.DefaultBucket

// clusterPatience bounds what a cluster does by itself: an election alone takes up
// to nine seconds.
const clusterPatience = 60 * time.Second

// breath is the longest time without a call of a worker that has a share: it may
// draw fifty in a second.
const breath = time.Second

const (
	// lastsOn is how much longer than a lease a lasting fault is there at least.
	lastsOn = 2 * time.Second
	// settling is the time in which every processor syncs after a repair. Without
	// it the next fault would come on top of this one.
	settling = 2 * time.Second
)

// TestNATSFaults breaks clusters of real NATS servers under pools of real
// processes.
//
// A new leader is another server to the store, which therefore freezes: no share
// can grow for one removal time. At the default lease all processors keep theirs
// while there is no leader, so that none of this is felt. At the shortest lease
// all have lost theirs by then, and have to wait for the end of the freeze.
func TestNATSFaults(t *testing.T) {
	t.Parallel() // with the other stores: nearly all of it is waiting
	g := newLedger(t, "R8", fmt.Sprintf("processes of this module on three nats-server %s", server.VERSION))
	outages := &spans{}
	t.Run("lanes", func(t *testing.T) {
		t.Run("default lease", func(t *testing.T) {
			t.Parallel() // nearly all of a lane is waiting
			l := newNATSLane(t, g, outages, poolConfig{Defaults: true, Lease: driver.DefaultLease})
			l.run(leaderKilled, leaderStopped, leaderParted, allRestarted)
			for extra := 0; l.heldOut == 0 && extra < 4; extra++ { // elections took too long, each time
				l.suffer(&leaderKilled)
			}
			require.Positive(t, l.heldOut, "no change of leader that leases outlast")
		})
		t.Run("shortest lease", func(t *testing.T) {
			t.Parallel()
			l := newNATSLane(t, g, outages, poolConfig{Lease: driver.MinLease})
			l.run(leaderKilled, leaderPaused, leaderCutOff, twoGone, allRestarted)
		})
	})
	outages.note(g, "no writes at a fault")
	g.record(t, "nats")
}

// A natsLane is a lane on a cluster of NATS servers.
type natsLane struct {
	*lane
	url     string // of all servers
	cluster *servers.NATSProcessCluster
	probe   *probe
	outages *spans
	// heldOut counts the changes of leader through which every processor had to keep its share.
	heldOut int
}

// A natsFault happens to the cluster while a server leads the pool's stream.
type natsFault struct {
	name string
	// inject does it, and returns when the old leader takes no more writes.
	inject func(l *natsLane, leader *servers.NATSNode)
	// lasts makes it last for longer than a lease, whoever leads then.
	lasts bool
	// again, when set, does something more when the cluster serves again, and returns when it is over.
	again func(l *natsLane, leader *servers.NATSNode)
	// repair undoes what is left of it after recovery.
	repair func(l *natsLane, leader *servers.NATSNode)
}

// newNATSLane returns a lane whose workers know all three servers.
func newNATSLane(t *testing.T, g *ledger, outages *spans, c poolConfig) *natsLane {
	takeTurn(t, clusters)
	cluster := testenv.NATSProcessCluster(t, 3)
	url := "nats://" + strings.ReplaceAll(strings.Join(cluster.URLs(), ","), "nats://", "") + "?replicas=3"
	c.Stores = everyone(url)
	return &natsLane{lane: newLane(t, g, c), url: url, cluster: cluster, probe: startProbe(t, cluster), outages: outages}
}

// run waits for the pool and goes through the faults in random order, as often
// as there are rounds.
func (l *natsLane) run(faults ...natsFault) {
	defer l.ledger.addPool(l.pool)
	l.start()
	for range rounds(l) {
		for _, i := range l.rng.Perm(len(faults)) {
			if !l.suffer(&faults[i]) {
				return
			}
		}
	}
}

// suffer goes through one fault and judges. It returns false if the pool did not
// recover at all.
func (l *natsLane) suffer(f *natsFault) bool {
	leader := l.whole()
	l.probe.avoid(leader)
	began := clock()
	f.inject(l, leader)
	injected := clock()
	reachable, outage := l.probe.outage(l, began, injected)
	l.outages.add(outage)
	if f.lasts {
		l.pass(began + l.pool.Lease + lastsOn - clock())
		reachable = clock() // whoever was served only before is not served
	}

	if f.again != nil {
		f.again(l, leader)
	}
	took, ok := l.pool.recovery(reachable, l.lost()+patience, l.everybody()...)
	late := l.late(f.name, reachable, took)
	if f.again != nil {
		require.Positive(l, late, "the cluster did not stop serving once more")
	}
	reachable, outage, took = reachable+late, outage+late, max(took-late, 0)
	name, allowed := l.promise(f, outage)
	if f.repair != nil {
		f.repair(l, leader)
	}
	l.pass(settling)
	silence := l.silence(began)
	next := l.whole()
	l.Logf("%s: no writes for %.2fs, recovered after %.2fs, a worker was silent for %.2fs, %s leads after %s",
		name, outage.Seconds(), took.Seconds(), silence.Seconds(), next.Name(), leader.Name())
	l.ledger.addFault(name, took, allowed)
	switch {
	case !ok:
		l.ledger.brokenf(l, l.replay, "%s: the limit is not used again %s after the cluster took writes", name, took)
	case took > allowed:
		l.ledger.brokenf(l, l.replay, "%s: the limit was used again %s after the cluster took writes, allowed is %s; the machine held somebody up for %s at worst",
			name, took, allowed, l.stalls.look())
	}
	if l.pool.Strict {
		// The probe may see that a write succeeds as late as this.
		l.gone, l.back = injected, reachable-probeTimeout-probeEvery
		l.judgeAway(name)
	}
	if l.holdsOut(outage) && next != leader {
		l.heldOut++
	}
	if l.holdsOut(outage) && silence > breath {
		l.ledger.brokenf(l, l.replay, "%s: the cluster took no writes for %s, a worker drew nothing for %s", name, outage, silence)
	}
	l.judge(name)
	return ok
}

// late returns how much later than it first served the cluster served for good, when a recovery took so long
// that it had stopped serving meanwhile.
func (l *natsLane) late(fault string, served, took time.Duration) time.Duration {
	again, relapsed := l.probe.relapsed(served, served+took)
	if !relapsed {
		return 0
	}
	l.Logf("%s: the cluster served, stopped serving, and serves again %.2fs later", fault, (again - served).Seconds())
	l.ledger.note("a cluster stopped serving once more after a fault", fault)
	return again - served
}

// everybody is the workers that must draw after a fault. Those that wait for the same few
// slots have no share each, and calls in flight no rate.
func (l *natsLane) everybody() []int {
	if l.pool.Strict || l.pool.Slots > 0 {
		return nil
	}
	return []int{0, 1, 2, 3}
}

// holdsOut tells whether every processor has its share for as long as the cluster
// takes no writes: the newest answer is one sync interval old at most when it goes, and
// a request that was sent before it took writes again is lost and holds up the next one.
func (l *natsLane) holdsOut(outage time.Duration) bool {
	return !l.pool.Strict && outage < l.pool.Lease-wire.Interval(l.pool.Lease, workersPerLane)-protocol.SyncTimeout(l.pool.Lease)
}

// promise returns what a fault is called in the figures, and the longest recovery.
// Shares that were kept are not lost to the freeze; shares that ran out are.
func (l *natsLane) promise(f *natsFault, outage time.Duration) (name string, allowed time.Duration) {
	switch {
	case l.pool.Strict: // a new leader is another server, which remembers nothing of slots for sure
		return "strict: " + f.name, l.lost()
	case l.holdsOut(outage):
		return f.name, stateKept
	default:
		return f.name + ", leases over", l.lost()
	}
}

// whole waits until all servers are in step with the stream's leader. Servers that
// do not manage that by themselves are all started again: the pool, which had a
// majority to work with, has been judged by then.
func (l *natsLane) whole() *servers.NATSNode {
	leader, err := l.together()
	if err == nil {
		return leader
	}
	l.Logf("all servers are started again: %v\n%s", err, l.cluster.LogTail())
	l.ledger.note("a cluster had to be started again, because a server did not find back", l.replay)
	ctx, cancel := l.bounded()
	defer cancel()
	require.NoError(l, l.cluster.RestartAll(ctx))
	leader, err = l.together()
	require.NoError(l, err)
	_, ok := l.pool.recovery(clock(), l.pool.forgotten()+patience, l.everybody()...)
	require.True(l, ok, "the limit is not used after all servers were started again")
	return leader
}

func (l *natsLane) together() (*servers.NATSNode, error) {
	ctx, cancel := l.bounded()
	defer cancel()
	return l.cluster.WaitStreamWhole(ctx, natsStream)
}

// silence returns the longest time since a moment for which one of the workers
// drew nothing.
func (l *natsLane) silence(from time.Duration) time.Duration {
	var longest time.Duration
	uses, now := l.pool.service.since(from), clock()
	for w := range l.pool.workers {
		last := from
		for _, at := range append(grants(uses, func(u use) bool { return u.worker == w }), now) {
			longest, last = max(longest, at-last), at
		}
	}
	return longest
}

// spans gathers durations from several lanes.
type spans struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *spans) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

func (s *spans) note(g *ledger, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := proof.Summarize(s.all)
	g.note(what, fmt.Sprintf("p50 %.1f s, longest %.1f s", times.P50.Seconds(), times.Longest.Seconds()))
}
