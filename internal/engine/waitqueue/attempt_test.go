package waitqueue

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// within returns a context whose deadline comes in d, on the virtual clock.
func within(f *fakeLimiter, d time.Duration) context.Context {
	ctx, cancel := context.WithDeadline(context.Background(), f.Present().Add(d))
	f.t.Cleanup(cancel)
	return ctx
}

// checkLeft checks that an attempt has no place and no promise any more, holds no lock and keeps no token.
func checkLeft(t *testing.T, a *Attempt[int], list []*fakeLimiter) {
	t.Helper()
	for i, f := range list {
		require.False(t, a.places[i].queued || f.promised || f.locked || a.places[i].Many)
		require.True(t, a.places[i].Over)
		require.Zero(t, f.taken)
		require.Negative(t, f.leaves[len(f.leaves)-1])
	}
}

// An attempt fails when a limiter certainly has too few tokens until its deadline: the scarcest, or else the first of these. A tag lets others pass
// while one of the limits is late as things stand.
func TestAttemptFailsWhenItsDeadlineIsMissed(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		list := fakes(t, 10*ms, 10*ms, 10*ms)
		all := []Part[int]{list[0].limitAt(1, false), list[1].tagBucketOf(1), list[2].part()}
		deadline := time.Duration(r.IntN(5)-1) * 10 * ms
		a := NewAttempt(within(list[0], deadline), all)
		a.seat(1+r.IntN(3), false)
		soonest := make([]time.Duration, len(list))
		frozen := time.Duration(0)
		for i, f := range list {
			f.due, f.unknown = time.Duration(r.IntN(5))*10*ms, r.IntN(6) == 0
			soonest[i] = f.due
			if i == 0 {
				soonest[i] = min(soonest[i], time.Duration(r.IntN(5))*10*ms)
				a.parts[i].Soonest = func(*Waiter[int]) time.Duration { return soonest[0] }
			}
			f.refusal.Frozen = time.Duration(r.IntN(4)) * 10 * ms
			f.refusal.RetryAfter = time.Duration(r.IntN(4)) * 10 * ms
			frozen = max(frozen, f.refusal.Frozen)
		}
		at, wait := 2, time.Duration(1) // the last that lacks tokens, if none is due later
		for i, f := range list {
			if f.unknown || f.due > wait {
				at, wait = i, f.due
			}
			if f.unknown {
				break
			}
		}
		fails := -1
		for i := range list {
			if wait > deadline && soonest[i] > deadline && (fails < 0 || i == at) {
				fails = i
			}
		}
		late := false
		for _, f := range []*fakeLimiter{list[0], list[2]} {
			late = late || !f.unknown && f.due > deadline
		}

		_, won, failed := a.look()
		require.False(t, won)
		require.Equal(t, []bool{late, late}, []bool{a.places[1].Late, list[1].letPass}, "seed %d", seed)
		require.False(t, a.places[0].Late || a.places[2].Late)
		if fails < 0 {
			require.Nil(t, failed, "seed %d", seed)
			continue
		}
		require.NotNil(t, failed, "seed %d", seed)
		of := list[fails]
		retry := max(of.due, of.refusal.RetryAfter, frozen)
		want := sharing.Refusal{Reason: limit.Reason(of.name), Cost: a.n, RetryAfter: retry, Frozen: frozen}
		require.Equal(t, &Failure{At: fails, Refusal: want, Demand: a.n}, failed, "seed %d", seed)
		checkLeft(t, a, list)
	}
}

// A tag lets others pass no longer than the limit is late.
func TestAttemptLetsOthersPassWhileItIsLate(t *testing.T) {
	list := fakes(t, 10*ms, 10*ms)
	a := NewAttempt(within(list[0], 30*ms), []Part[int]{list[0].limitAt(1, false), list[1].tagBucketOf(1)})
	a.seat(1, false)
	a.parts[0].Soonest = func(*Waiter[int]) time.Duration { return 0 }
	for _, due := range []time.Duration{40 * ms, 50 * ms, 30 * ms, 20 * ms, 40 * ms} {
		list[0].due = due
		_, _, failed := a.look()
		require.Nil(t, failed)
		require.Equal(t, due > 30*ms, a.places[1].Late)
	}
	free := NewAttempt(context.Background(), a.parts)
	list[0].due = sharing.Never
	free.seat(1, false)
	_, _, failed := free.look()
	require.Nil(t, failed)
	require.False(t, free.places[1].Late, "without a deadline nothing is late")
}

// A draw that a fallback stands in for does not wait for the budget.
func TestAttemptLeavesABudgetToItsFallback(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		for _, refuses := range []bool{false, true} {
			list := fakes(t, 10*ms, 10*ms)
			a := NewAttempt(context.Background(), parts(list))
			a.Fallback = fallback
			list[1].due, list[1].refusal = 70*ms, sharing.Refusal{RetryAfter: 20 * ms, Fallback: refuses}
			list[0].refusal.Frozen = 30 * ms
			a.seat(2, false)
			_, _, failed := a.look()
			require.Equal(t, fallback && refuses, failed != nil)
			if failed != nil {
				r := sharing.Refusal{Reason: "b", Cost: 2, RetryAfter: 30 * ms, Frozen: 30 * ms, Fallback: true}
				require.Equal(t, &Failure{At: 1, Refusal: r, Demand: 2}, failed)
				checkLeft(t, a, list)
			}
		}
	}
}

// What can never be drawn is refused at once: all that is asked for, or one token if any will do.
func TestAttemptRefusesWhatIsImpossible(t *testing.T) {
	for _, tc := range []struct {
		n      int
		upTo   bool
		closed bool
		reason limit.Reason
	}{{n: 5}, {n: 6, reason: limit.ReasonTooLarge}, {n: 6, upTo: true}, {n: 5, closed: true, reason: limit.ReasonClosed}} {
		list := fakes(t, 10*ms, 10*ms)
		list[1].largest, list[1].closed = 5, tc.closed
		a := NewAttempt(context.Background(), parts(list))
		a.seat(tc.n, tc.upTo)
		_, won, failed := a.look()
		require.False(t, won)
		if tc.reason == "" {
			require.Nil(t, failed)
			continue
		}
		require.Equal(t, &Failure{At: 1, Refusal: sharing.Refusal{Reason: tc.reason, Cost: tc.n}}, failed)
		checkLeft(t, a, list)
	}
}

// A draw takes as much as all have, by their prices, from all of them or from none.
func TestAttemptDrawsFromAllOrNone(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		list := fakes(t, 10*ms, 10*ms, 0)
		all := parts(list)
		price := []int{1, r.IntN(4) - 1, 1}
		all[1].Price = func(n int) int { return n * price[1] }
		a := NewAttempt(context.Background(), all)
		n, upTo := r.IntN(6), r.IntN(2) == 0
		a.seat(n, upTo)
		most := n
		for i, f := range list {
			f.hand = r.IntN(14)
			f.between = r.IntN(12) / 9
			asks := func(n int) int { return max(max(n, 1)*price[i], 1) }
			least := n
			if upTo {
				least = 1
			}
			require.Equal(t, []int{asks(n), asks(least)}, []int{a.places[i].N, a.places[i].Least}, "seed %d", seed)
			for most >= 0 && asks(most) > f.hand {
				if most--; !upTo || n == 0 || most == 0 {
					most = -1
				}
			}
		}
		had := []int{list[0].hand, list[1].hand, list[2].hand}
		k, won, failed := a.look()
		require.Nil(t, failed)
		require.Equal(t, most >= 0, won, "seed %d", seed)
		if !won {
			for i, f := range list {
				require.Equal(t, []int{had[i], 0}, []int{f.hand, f.taken})
			}
			continue
		}
		require.Equal(t, most, k, "seed %d", seed)
		for i, f := range list {
			costs := max(most*price[i], 0)
			require.Equal(t, []int{costs, costs}, []int{f.taken, a.Permits()[i]}, "seed %d", seed)
			require.Equal(t, []int{costs}, f.leaves, "it has left, with what it drew")
		}
		a.Undo()
		a.Undo()
		for i, f := range list {
			require.Equal(t, []int{had[i], 0, 0}, []int{f.hand, f.taken, a.Permits()[i]})
			require.False(t, f.locked)
		}
	}
}

func TestWinNowDrawsWhatIsThere(t *testing.T) {
	list := fakes(t, 10*ms, 10*ms)
	a := NewAttempt(context.Background(), parts(list))
	list[0].hand, list[1].hand = 4, 3
	require.False(t, a.WinNow(4))
	require.True(t, a.WinNow(3))
	require.Equal(t, []int{3, 3}, a.Permits())
	require.False(t, list[0].locked || list[1].locked)
}

// A caller hears where it waits, each time that this changes. While it waits it listens for the end of each limiter, and no longer.
func TestWinWaitsForTheScarcest(t *testing.T) {
	list := fakes(t, 10*ms, 10*ms)
	a := NewAttempt(context.Background(), parts(list))
	var waits []any
	a.Waits = func(at int, r limit.Reason, n int) {
		require.False(t, list[0].locked || list[1].locked)
		waits = append(waits, at, r, n)
	}
	steps := 0
	list[0].due = 50 * ms
	list[0].await = func(ready <-chan struct{}) bool {
		require.Len(t, list[0].bells, 1)
		require.Len(t, list[1].bells, 1)
		switch steps++; steps {
		case 2:
			list[1].due = 80 * ms
		case 3:
			list[0].hand, list[1].hand = 2, 2
			require.Len(t, list[0].clock.timers, 1, "it looks again by itself")
		}
		list[1].bells[0]() // a limiter has something to say
		<-ready
		return true
	}
	n, failed := a.Win(context.Background(), 2, false)
	require.Nil(t, failed)
	require.Equal(t, 2, n)
	require.Equal(t, []any{0, limit.Reason("a"), 2, 1, limit.Reason("b"), 2}, waits)
	require.Empty(t, list[0].bells)
	require.Empty(t, list[1].bells)
	require.Empty(t, list[0].clock.timers)

	one := fakes(t, 10*ms)
	one[0].await = func(<-chan struct{}) bool {
		require.Empty(t, one[0].bells, "where it always stands it is told anyway")
		one[0].hand = 1
		return true
	}
	one[0].due = 1
	n, failed = NewAttempt(context.Background(), parts(one)).Win(context.Background(), 1, false)
	require.Nil(t, failed)
	require.Equal(t, 1, n)
}

// An attempt whose context ends tells when to come back, behind all that wait, and what it would still take if its deadline has passed.
func TestAttemptThatIsGivenUp(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	late, stop := context.WithDeadline(context.Background(), time.Unix(1e9, 0))
	defer stop()
	for _, ctx := range []context.Context{gone, late} {
		for _, retry := range []time.Duration{10 * ms, 20 * ms, 30 * ms} {
			list := fakes(t, 10*ms, 10*ms)
			list[0].due, list[0].refusal.RetryAfter = 20*ms, retry
			list[0].await = func(<-chan struct{}) bool { return false }
			a := NewAttempt(context.Background(), parts(list))
			_, failed := a.Win(ctx, 3, false)
			want := &Failure{Refusal: sharing.Refusal{Reason: "a", Cost: 3, RetryAfter: max(retry, 20*ms)}, Ended: true}
			if ctx == late {
				want.Demand = 3
			}
			require.Equal(t, want, failed)
			require.Equal(t, uint64(Latest), a.places[0].Age)
			checkLeft(t, a, list)
		}
	}
}

// A limit draws for an attempt that needs nothing but its tokens and those of its tags, when all of them are there.
func TestLimitServesAnAttempt(t *testing.T) {
	for name, tc := range map[string]struct {
		parts func(list []*fakeLimiter) []Part[int]
		hand  []int
		busy  bool
		at    int
		won   bool
	}{
		"with tags": {func(l []*fakeLimiter) []Part[int] {
			return []Part[int]{l[0].limitAt(1, false), l[1].tagBucketOf(1), l[2].tagBucketOf(1)}
		}, []int{2, 2, 2}, false, 0, true},
		"a tag lacks": {func(l []*fakeLimiter) []Part[int] {
			return []Part[int]{l[0].limitAt(1, false), l[1].tagBucketOf(1), l[2].tagBucketOf(1)}
		}, []int{2, 2, 1}, false, 0, false},
		"a tag's lock is held": {func(l []*fakeLimiter) []Part[int] {
			return []Part[int]{l[0].limitAt(1, false), l[1].tagBucketOf(1), l[2].tagBucketOf(1)}
		}, []int{2, 2, 2}, true, 0, false},
		"another limit's tag": {func(l []*fakeLimiter) []Part[int] {
			return []Part[int]{l[0].limitAt(1, false), l[1].tagBucketOf(1), l[2].tagBucketOf(2)}
		}, []int{2, 2, 2}, false, 0, false},
		"another limit": {func(l []*fakeLimiter) []Part[int] {
			return []Part[int]{l[0].limitAt(1, false), l[1].tagBucketOf(1), l[2].limitAt(2, false)}
		}, []int{2, 2, 2}, false, 0, false},
		"from a tag bucket": {func(l []*fakeLimiter) []Part[int] {
			return []Part[int]{l[0].limitAt(1, false), l[1].tagBucketOf(1), l[2].tagBucketOf(1)}
		}, []int{2, 2, 2}, false, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			list := fakes(t, 10*ms, 10*ms, 10*ms)
			a := NewAttempt(context.Background(), tc.parts(list))
			a.seat(2, false)
			_, won, failed := a.look()
			require.False(t, won || failed != nil)
			for i, n := range tc.hand {
				list[i].hand = n
			}
			list[2].busy = tc.busy
			list[0].Lock() // the limit serves its queue
			require.Equal(t, tc.won, a.Serve(&a.places[tc.at]))
			list[0].Unlock()
			require.False(t, list[1].locked || list[2].locked)
			require.Equal(t, tc.won, len(a.turn) == 1, "it is woken")
			for i, f := range list {
				require.Equal(t, tc.won, f.taken == 2, "part %d", i)
			}
			if tc.won {
				n, won, failed := a.look()
				require.Equal(t, []any{2, true}, []any{n, won})
				require.Nil(t, failed)
				n, failed = a.quit(context.Background())
				require.Nil(t, failed, "it has won before its context ended")
				require.Equal(t, 2, n)
			}
		})
	}
}

func TestSinceKeepsTheAge(t *testing.T) {
	list := fakes(t, 10*ms)
	first, second := NewAttempt(context.Background(), parts(list)), NewAttempt(context.Background(), parts(list))
	first.seat(1, false)
	second.seat(1, false)
	require.Less(t, first.places[0].Age, second.places[0].Age)
	second.Since(7)
	second.seat(1, false)
	require.EqualValues(t, 7, second.places[0].Age)
	require.EqualValues(t, sharing.Never, second.places[0].Deadline)
	bounded := NewAttempt(within(list[0], time.Second), parts(list))
	bounded.seat(1, false)
	require.EqualValues(t, time.Second, bounded.places[0].Deadline)
}
