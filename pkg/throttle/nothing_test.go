package throttle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A bench has one limit of each kind, as all of them are in use together.
type bench struct {
	plain, hard, quotas *Throttle
	strict              *Throttle
	slots               *InFlight
	sharers             []*script
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{}
	sharer := func() Option {
		s := &script{first: limit.Lease{Share: wholeShare}}
		b.sharers = append(b.sharers, s)
		return WithSharer(s)
	}
	b.plain = whole(t, Limit{Max: 100, Burst: 10}, sharer())
	b.hard = whole(t, Limit{Max: 100, Burst: 10, Hard: true}, sharer())
	b.strict = whole(t, Limit{Max: 10, Strict: true})
	b.quotas = whole(t, Limit{Max: 100, Burst: 10}, WithQuotas(benchQuotas(false)))
	b.slots = flight(t, 4, sharer())
	time.Sleep(time.Second)
	return b
}

func benchQuotas(blocked bool) Quotas {
	acme := Quota{Total: 50, Budgets: []Budget{{Amount: 20, Per: limit.PeriodHour}}}
	if blocked {
		acme = Quota{Blocked: true}
	}
	return Quotas{Tags: map[string]Quota{"acme": acme, "globex": {}}}
}

func (b *bench) throttles() []*Throttle { return []*Throttle{b.plain, b.hard, b.strict, b.quotas} }

// limiters are the ways to put these limits around a call.
var benchLimiters = map[string]func(b *bench) Limiter{
	"plain":           func(b *bench) Limiter { return b.plain },
	"hard":            func(b *bench) Limiter { return b.hard },
	"strict":          func(b *bench) Limiter { return b.strict },
	"slots":           func(b *bench) Limiter { return b.slots },
	"quotas":          func(b *bench) Limiter { return b.quotas },
	"a tag":           func(b *bench) Limiter { return b.quotas.ForTag("acme") },
	"two tags":        func(b *bench) Limiter { return b.quotas.ForTags("globex", "acme") },
	"calls":           func(b *bench) Limiter { return All(b.plain, PerCall(b.slots)) },
	"requests":        func(b *bench) Limiter { return All(b.plain, PerCall(b.strict)) },
	"weighed":         func(b *bench) Limiter { return Weigh(b.plain, func(n int) int { return 4 * n }) },
	"all":             func(b *bench) Limiter { return All(b.plain, b.hard, b.strict, b.slots, b.quotas.ForTag("acme")) },
	"all of a tag":    func(b *bench) Limiter { return ForTags(All(b.quotas, PerCall(b.slots), b.hard), "acme") },
	"shown":           func(b *bench) Limiter { return shown{b.quotas.ForTag("acme")} },
	"all of a hidden": func(b *bench) Limiter { return All(b.plain, hidden{b.quotas.ForTag("acme")}) },
	"all of hidden":   func(b *bench) Limiter { return All(hidden{b.plain}, hidden{b.slots}) },
}

// benchStates are what can hold a call back. Each returns how it ends, if not by itself.
var benchStates = map[string]func(t *testing.T, b *bench) (end func()){
	"nothing": func(*testing.T, *bench) func() { return func() {} },
	"paused": func(t *testing.T, b *bench) func() {
		type pauser interface {
			Pause(ctx context.Context, until time.Time, reason string, opts ...PauseOption) (PauseReceipts, error)
			Resume(ctx context.Context, opts ...PauseOption) error
		}
		all := []pauser{b.plain, b.hard, b.strict, b.quotas, b.slots}
		for _, p := range all {
			_, err := p.Pause(t.Context(), time.Time{}, "maintenance")
			require.NoError(t, err)
		}
		return func() {
			for _, p := range all {
				require.NoError(t, p.Resume(context.Background()))
			}
		}
	},
	"tag paused": func(t *testing.T, b *bench) func() {
		_, err := b.quotas.Pause(t.Context(), time.Time{}, "maintenance", PauseTag("acme"))
		require.NoError(t, err)
		return func() { require.NoError(t, b.quotas.Resume(context.Background(), PauseTag("acme"))) }
	},
	"in debt": func(t *testing.T, b *bench) func() {
		for _, th := range b.throttles() {
			require.NotErrorIs(t, Charge(th.ForTag("acme"), 40), ErrNotCharged)
		}
		return func() {}
	},
	"empty": func(_ *testing.T, b *bench) func() {
		for _, th := range b.throttles() {
			drain(th)
		}
		return func() {}
	},
	"blocked": func(_ *testing.T, b *bench) func() { // for ever
		rateHolder{b.quotas}.SetQuotas(benchQuotas(true).WithDefaults(time.Second))
		return func() {}
	},
	"budget spent": func(t *testing.T, b *bench) func() {
		require.NotErrorIs(t, Charge(b.quotas.ForTag("acme"), 20), ErrNotCharged)
		time.Sleep(time.Second)
		return func() {}
	},
	"no share": func(_ *testing.T, b *bench) func() {
		give := func(share float64) {
			for _, s := range b.sharers {
				s.give(share)
			}
		}
		give(0)
		return func() { give(1) }
	},
	"full": func(t *testing.T, b *bench) func() {
		p := take(t, b.slots, 4)
		return p.Cancel
	},
	"others wait": func(_ *testing.T, b *bench) func() {
		for _, th := range b.throttles() {
			drain(th)
			beginWith(th.ForTag("acme").Acquire, 5, 0)
		}
		return func() {}
	},
	"closed": func(t *testing.T, b *bench) func() {
		require.NoError(t, b.quotas.Close())
		require.NoError(t, b.strict.Close())
		require.NoError(t, b.slots.Close())
		return func() {}
	},
}

// benchWays are the ways to draw.
var benchWays = map[string]func(ctx context.Context, l Limiter, n int) (Permit, error){
	"Acquire":     func(ctx context.Context, l Limiter, n int) (Permit, error) { return l.Acquire(ctx, n) },
	"AcquireUpTo": func(ctx context.Context, l Limiter, n int) (Permit, error) { return l.AcquireUpTo(ctx, n) },
	"TryAcquire": func(_ context.Context, l Limiter, n int) (p Permit, err error) {
		p, ok := l.TryAcquire(n)
		if !ok {
			err = errors.New("refused")
		}
		return p, err
	},
	"deadline": func(ctx context.Context, l Limiter, n int) (Permit, error) {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		return l.Acquire(ctx, n)
	},
	"ended": func(ctx context.Context, l Limiter, n int) (Permit, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("gone"))
		return l.Acquire(ctx, n)
	},
}

// A draw of no tokens, or one that weighs nothing, passes nothing that a draw of one would not pass. It is granted and refused at the same
// moment, for the same reason.
func TestADrawOfNothingWaitsAsOneOfOne(t *testing.T) {
	held := map[string]int{}
	for of, around := range benchLimiters {
		for state, hold := range benchStates {
			for way, draw := range benchWays {
				if state == "budget spent" || state == "closed" || state == "blocked" {
					if way == "ended" {
						continue
					}
				}
				each := time.Nanosecond
				if strings.Contains(state, "paused") {
					each = time.Second // callers are let go one after the other, at random
				}
				outcome := func(n int, around func(b *bench) Limiter) (reported string) {
					synctest.Test(t, func(t *testing.T) {
						b := newBench(t)
						end, began := hold(t, b), time.Now()
						time.AfterFunc(time.Second, end)
						c := beginWith(func(ctx context.Context, n int) (Permit, error) { return draw(ctx, around(b), n) }, n, 0)
						if c.waits() {
							held[state]++
						}
						time.Sleep(2 * time.Hour) // a budget comes again
						if c.waits() {
							reported = "waits"
							c.cancel()
						}
						if reported != "" {
							return
						}
						r := c.end(t)
						reported = fmt.Sprint(r.at.Sub(began).Truncate(each), " ")
						if e, ok := errors.AsType[*Error](r.err); ok {
							reported += fmt.Sprint(e.Reason, e.Limit, e.Tag, e.RetryAfter, " ", e.Frozen)
						} else {
							reported += fmt.Sprint(r.err)
						}
						if r.err == nil {
							require.Equal(t, n, r.permit.N())
						}
					})
					return reported
				}
				light := func(b *bench) Limiter { return Weigh(around(b), func(n int) int { return n / 4 }) }
				one := outcome(1, around)
				if none := outcome(0, around); one != none {
					t.Errorf("%s, %s, %s: a draw of one %q, of none %q", of, state, way, one, none)
				}
				if none := outcome(1, light); of != "weighed" && one != none { // which asks for four
					t.Errorf("%s, %s, %s: a draw of one %q, of one that weighs nothing %q", of, state, way, one, none)
				}
			}
		}
	}
	for state := range benchStates {
		if state != "nothing" && state != "closed" {
			require.NotZero(t, held[state], state)
		}
	}
}

// A draw is charged what it is settled with, at all limiters, once. Where calls are counted, one that was made counts, whatever it cost.
func TestADrawIsChargedWhatItIsSettledWith(t *testing.T) {
	type figures struct{ tokens, requests, slots int }
	for how, of := range map[string]struct {
		end  func(p Permit)
		left func(n int) figures
	}{
		"held":        {func(Permit) {}, func(n int) figures { return figures{n, 1, 1} }},
		"cancelled":   {Permit.Cancel, func(int) figures { return figures{} }},
		"for nothing": {func(p Permit) { p.Settle(0); p.Cancel() }, func(int) figures { return figures{0, 1, 0} }},
		"for many":    {func(p Permit) { p.Settle(30); p.Settle(50); p.Cancel() }, func(int) figures { return figures{30, 1, 0} }},
		"for less":    {func(p Permit) { p.Settle(-7) }, func(int) figures { return figures{0, 1, 0} }},
	} {
		for _, n := range []int{0, 1, 5} {
			for _, way := range []string{"Acquire", "AcquireUpTo", "TryAcquire"} {
				for _, hide := range []func(l Limiter) Limiter{func(l Limiter) Limiter { return l }, func(l Limiter) Limiter { return hidden{l} }} {
					t.Run(fmt.Sprint(how, n, way), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							th := full(t, 100, WithQuotas(Quotas{Tags: map[string]Quota{"acme": {Total: 100, Burst: 100}}}))
							plain, requests, slots := full(t, 1000), full(t, 1000), flight(t, 3)
							tag := th.ForTag("acme")
							l := All(All(tag, plain), hide(PerCall(All(requests, slots))))
							at := func() []int {
								tokens := as[interface{ Status() Status }](t, tag).Status().Tokens
								return []int{int(tokens), int(th.Status().Tokens), int(plain.Status().Tokens), int(requests.Status().Tokens), freeSlots(slots)}
							}
							less := func(before []int, f figures) []int {
								return []int{before[0] - f.tokens, before[1] - f.tokens, before[2] - f.tokens, before[3] - f.requests, before[4] - f.slots}
							}
							before := at()
							p, err := benchWays[way](t.Context(), l, n)
							require.NoError(t, err)
							require.Equal(t, less(before, figures{n, 1, 1}), at())
							of.end(p)
							require.Equal(t, less(before, of.left(n)), at())
						})
					})
				}
			}
		}
	}
}

// No settlement makes a call one that was not made: a limit on calls lets through what it has, and all the calls that are cancelled.
func TestCallsThatCostNothingAreCounted(t *testing.T) {
	for name, around := range map[string]func(th *Throttle, calls, slots Limiter) Limiter{
		"all":      func(th *Throttle, calls, slots Limiter) Limiter { return All(th, calls, slots) },
		"a tag":    func(th *Throttle, calls, slots Limiter) Limiter { return ForTags(All(th, calls, slots), "acme") },
		"two tags": func(th *Throttle, calls, slots Limiter) Limiter { return ForTags(All(th, calls, slots), "acme", "eu") },
		"weighed": func(th *Throttle, calls, slots Limiter) Limiter {
			return All(Weigh(th, func(n int) int { return 2 * n }), calls, slots)
		},
		"nested": func(th *Throttle, calls, slots Limiter) Limiter { return All(th, PerCall(hidden{All(calls, slots)})) },
		"hidden": func(th *Throttle, calls, slots Limiter) Limiter { return hidden{All(th, calls, slots)} },
	} {
		for _, n := range []int{0, 1, 3} {
			for end, want := range map[int]int{0: 10, cancelled: 1000} {
				t.Run(fmt.Sprint(name, n, end), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						th := full(t, 100, WithQuotas(benchQuotas(false)))
						calls, slots := full(t, 10), flight(t, 1)
						time.Sleep(time.Second)
						l, passed := around(th, PerCall(calls), PerCall(slots)), 0
						for range 1000 {
							p, ok := l.TryAcquire(n)
							if !ok {
								continue
							}
							passed++
							if end == cancelled {
								p.Cancel()
							}
							p.Settle(end)
						}
						require.Equal(t, want, passed)
						require.Zero(t, slots.Status().InUse)
						require.InDelta(t, 100, th.Status().Tokens, 0.01)
					})
				})
			}
		}
	}
}
