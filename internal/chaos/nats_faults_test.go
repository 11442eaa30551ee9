//go:build numathrottle_faults

package chaos

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

var (
	leaderKilled  = natsFault{name: "leader killed", inject: killLeader, repair: restartLeader}
	leaderStopped = natsFault{name: "leader stopped", inject: stopLeader, repair: continueLeader}
	leaderPaused  = natsFault{name: "leader stopped for a moment", inject: pauseLeader}
	leaderCutOff  = natsFault{name: "leader cut off from all", inject: cutOffLeader, repair: healLeader}
	leaderParted  = natsFault{name: "leader cut off from servers, not clients", lasts: true, inject: partLeader, repair: healLeader}
	twoGone       = natsFault{name: "leader killed, then the next one stopped for a moment", inject: killLeader, again: pauseNext, repair: restartLeader}
	allRestarted  = natsFault{name: "all servers restarted", inject: restartAll}
)

func killLeader(l *natsLane, leader *servers.NATSNode) { require.NoError(l, leader.Kill()) }

func restartLeader(l *natsLane, leader *servers.NATSNode) {
	ctx, cancel := l.bounded()
	defer cancel()
	require.NoError(l, leader.Restart(ctx))
}

func stopLeader(l *natsLane, leader *servers.NATSNode) {
	ctx, cancel := l.bounded()
	defer cancel()
	require.NoError(l, leader.Stop(ctx))
}

func continueLeader(l *natsLane, leader *servers.NATSNode) { require.NoError(l, leader.Continue()) }

// pauseLeader is over before there can be another leader: it writes again then.
func pauseLeader(l *natsLane, leader *servers.NATSNode) {
	stopLeader(l, leader)
	l.pass(l.between(500*time.Millisecond, 2500*time.Millisecond))
	continueLeader(l, leader)
}

// pauseNext leaves no majority for a moment, soon after processors have been served again, which are frozen
// then. A cluster does that by itself at times: when it has a leader of the stream, and notices later that it has
// none of its own.
func pauseNext(l *natsLane, killed *servers.NATSNode) {
	l.pass(time.Second)
	ctx, cancel := l.bounded()
	defer cancel()
	next, err := l.cluster.WaitStreamLeader(ctx, natsStream, killed)
	require.NoError(l, err)
	stopLeader(l, next)
	l.pass(l.between(2*relapse, 4*relapse))
	continueLeader(l, next)
}

// cutOffLeader lets nobody reach the leader.
func cutOffLeader(l *natsLane, leader *servers.NATSNode) {
	l.breakUp(append(l.cluster.Routes(leader), leader.Clients())...)
}

// partLeader lets clients reach the leader, which cannot reach the other servers.
func partLeader(l *natsLane, leader *servers.NATSNode) { l.breakUp(l.cluster.Routes(leader)...) }

// breakUp ends all connections, or lets them lie there with nothing coming through.
func (l *natsLane) breakUp(ways ...*proxy.Proxy) {
	swallow := l.rng.IntN(2) == 0
	for _, p := range ways {
		if swallow {
			p.Swallow(true, true)
		} else {
			p.Cut()
		}
	}
}

func healLeader(l *natsLane, leader *servers.NATSNode) {
	for _, p := range append(l.cluster.Routes(leader), leader.Clients()) {
		require.NoError(l, p.Heal())
	}
}

func restartAll(l *natsLane, _ *servers.NATSNode) {
	ctx, cancel := l.bounded()
	defer cancel()
	require.NoError(l, l.cluster.RestartAll(ctx))
}
