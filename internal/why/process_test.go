package why

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A node is a process of the pool "p" in virtual time.
type node struct {
	th *throttle.Throttle
	m  *consensus.Member
}

func startNode(t *testing.T, store driver.Store, id string, l throttle.Limit, q *throttle.Quotas, more ...consensus.Option) *node {
	t.Helper()
	m, err := consensus.Join(t.Context(), store, "p", append([]consensus.Option{
		consensus.WithID(id), consensus.WithLogger(slog.New(slog.DiscardHandler)),
	}, more...)...)
	require.NoError(t, err)
	opts := []throttle.Option{throttle.WithName("p"), throttle.WithSharer(m)}
	if q != nil {
		opts = append(opts, throttle.WithQuotas(*q))
	}
	th, err := throttle.New(l, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = errors.Join(th.Close(), m.Leave(context.Background())) })
	return &node{th, m}
}

// says is what the process says of itself.
func (n *node) says() Answer {
	v := n.m.View()
	st := n.th.Status()
	own := Own{Max: st.Limit.Max, Per: st.Limit.Per, Lease: st.Lease, Closed: st.Closed, Paused: st.Paused}
	own.Hold, own.Held = n.th.HoldUp()
	return Explain(Process(&v, own, time.Now()))
}

// seen is what an observer says of the pool.
func seen(t *testing.T, store driver.Store) Answer {
	t.Helper()
	o, err := protocol.LoadOverview(t.Context(), store, "p")
	require.NoError(t, err)
	return Explain(Pool(&o, time.Now()))
}

// begin begins n draws for a tag that go on until the test ends.
func (n *node) begin(ctx context.Context, tag string, calls int) {
	for range calls {
		go func() {
			for ctx.Err() == nil {
				_, _ = n.th.ForTag(tag).Acquire(ctx, 1)
			}
		}()
	}
}

// Whoever is asked, a process or an observer, says the same of a pool.
func TestOneSentence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		store := memstore.New()
		quotas := &throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 1, Per: time.Second, Burst: 1}}}
		l := throttle.Limit{Max: 400, Per: time.Second}
		a := startNode(t, store, "a", l, quotas)
		b := startNode(t, store, "b", l, quotas)
		all := func() (answers []Answer) { return []Answer{a.says(), b.says(), seen(t, store)} }
		same := func(want string) {
			t.Helper()
			for i, got := range all() {
				require.Regexp(t, want, got.Sentence, i)
			}
			require.Equal(t, a.says().Cause, seen(t, store).Cause)
		}
		time.Sleep(3 * time.Second)
		same("^nothing holds callers back$")

		a.begin(ctx, "acme", 12)
		time.Sleep(20 * time.Second)
		same(`^acme is held at its rate cap of 1/s; 1[0-2] callers wait, the longest for [0-9]`)

		_, err := b.m.Pause(ctx, time.Now().Add(time.Hour), "night")
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		same(`^paused by b until [0-9:]+ UTC \(night\); 1[23] callers wait: numathrottle resume --pool p$`)
		require.NoError(t, protocol.ClearPause(ctx, store, "p", ""))
		time.Sleep(3 * time.Second)
		same(`^acme is held at its rate cap`)

		a.begin(ctx, "beta", 40)
		b.begin(ctx, "beta", 40)
		time.Sleep(10 * time.Second)
		same(`^the limit of 400/s is used in full; [0-9]+ (of [0-9]+ )?callers wait`)
		require.NoError(t, protocol.SaveOverride(ctx, store, "p", protocol.Override{Max: 200, By: "ann"}))
		time.Sleep(10 * time.Second)
		same(`^the limit of 200/s, an override by ann, is used in full; [0-9]+ (of [0-9]+ )?callers wait( for it)?: numathrottle limit clear --pool p$`)
	})
}

var errAway = errors.New("dial tcp 10.0.0.1:6379: connect: connection refused")

// What a process does without its store depends on its policy, and it says so, with the error.
func TestAProcessWithoutItsStore(t *testing.T) {
	for policy, want := range map[consensus.StoreLoss]string{
		consensus.Stop: "the store cannot be reached: dial tcp 10.0.0.1:6379: connect: connection refused (NUMATHROTTLE_STORE): " +
			"this pod grants nothing until it answers",
		consensus.Degrade: "the store cannot be reached: dial tcp 10.0.0.1:6379: connect: connection refused (NUMATHROTTLE_STORE): " +
			"this pod goes on with its share of 100 % until it answers, for an hour at most",
	} {
		synctest.Test(t, func(t *testing.T) {
			store := world.NewLink(memstore.New())
			n := startNode(t, store, "a", throttle.Limit{Max: 400, Per: time.Second}, nil, consensus.WithOnStoreLoss(policy))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n.begin(ctx, "x", 40)
			time.Sleep(3 * time.Second)
			store.CutWith(errAway)
			defer store.CutWith(nil) // for the node to leave
			time.Sleep(20 * time.Second)
			require.Equal(t, Answer{"store_lost", Broken, want}, n.says())
		})
	}
}

// A limit without a pool says it, too, and so does one that was closed.
func TestALimitWithoutAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 1, Per: time.Minute})
		require.NoError(t, err)
		says := func() Answer {
			st := th.Status()
			own := Own{Max: st.Limit.Max, Per: st.Limit.Per, Lease: st.Lease, Closed: st.Closed, Paused: st.Paused}
			own.Hold, own.Held = th.HoldUp()
			return Explain(Process(nil, own, time.Now()))
		}
		require.Equal(t, "nothing holds callers back", says().Sentence)
		time.Sleep(2 * time.Minute)
		_, ok := th.TryAcquire(1)
		require.True(t, ok)
		require.Equal(t, "nothing holds callers back", says().Sentence, "nobody asks for the next one")
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go func() { _, _ = th.Acquire(ctx, 1) }()
		}
		synctest.Wait()
		require.Equal(t, "the limit of 1 per 1m is used in full; 2 callers wait", says().Sentence)
		cancel()
		synctest.Wait()
		require.NoError(t, th.Close())
		require.Equal(t, string(limit.ReasonClosed), says().Cause)
		require.Equal(t, "there is no limit: everything passes at once", Explain(Process(nil, Own{Lease: limit.Lease{Share: limit.WholeShare}}, now)).Sentence)
	})
}

// A process that grants nothing says why it does not, whatever holds back the callers of others: what it is not ready for.
func TestAProcessThatGrantsNothingSpeaksForItself(t *testing.T) {
	v := consensus.View{Pool: "p", ID: "b", Roster: []driver.RosterRow{
		{ID: "a", Claim: driver.Whole, Note: "1 0 400 1000000 0 0 w:12 u:1000 why:quota tag:acme h:12.3200..60000"}, {ID: "b"},
	}}
	own := Own{
		Max: 400, Per: time.Second, Lease: limit.Lease{Reason: limit.ReasonNoShare},
		Held: true, Hold: throttle.Throttling{Reason: limit.ReasonNoShare, Waiting: 1},
	}
	require.False(t, own.Ready())
	require.Equal(t, Answer{"no_share", Broken, "b has no share of the limit yet, and gets one with its next syncs; 1 of 13 callers waits for it"},
		Explain(Process(&v, own, now)))
	own.Lease = limit.Lease{Share: limit.WholeShare / 2}
	require.True(t, own.Ready())
	own.Held = false
	require.Equal(t, "acme is held at its rate cap of 60/s; 12 callers wait, the longest for 3.2 s", Explain(Process(&v, own, now)).Sentence)
}

// A told error knows what to do about it.
type reported struct{ error }

func (reported) Remedy() string { return "the store wants a login, and none is set" }

func TestFailureOf(t *testing.T) {
	failure, does := FailureOf(fmt.Errorf("consensus: %w", reported{errAway}))
	require.Equal(t, []string{"consensus: " + errAway.Error(), "the store wants a login, and none is set"}, []string{failure, does})
	failure, does = FailureOf(errAway)
	require.Equal(t, []string{errAway.Error(), ""}, []string{failure, does})
	failure, does = FailureOf(nil)
	require.Empty(t, failure+does)
}
