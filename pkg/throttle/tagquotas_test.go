package throttle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An All goes by quotas that have changed, also for a tag that it knows.
func TestAnAllGoesByChangedQuotas(t *testing.T) {
	quotas := func(total int) Quotas {
		q := Quotas{Tags: map[string]Quota{"kept": {Total: 5, Burst: 5}}}
		if total > 0 {
			q.Tags["acme"] = Quota{Total: total, Burst: total}
		}
		return q.WithDefaults(time.Second)
	}
	rpm := whole(t, Limit{Max: 1000, Per: time.Second}, WithQuotas(quotas(0)))
	tpm := whole(t, Limit{Max: 1000, Per: time.Second})
	defer func() { require.NoError(t, rpm.Close()); require.NoError(t, tpm.Close()) }()
	all := All(rpm, tpm).(Tagger) //nolint:forcetypeassert,errcheck // it is one
	total := func() int {
		for _, c := range all.ForTag("acme").(*multi).children { //nolint:forcetypeassert,errcheck // it is one
			if s, ok := c.native.(stockSource); ok {
				return s.quota().Total
			}
		}
		return -1
	}
	require.Zero(t, total())
	rateHolder{rpm}.SetQuotas(quotas(7))
	require.Equal(t, 7, total())
	known := all.ForTag("acme")
	require.Same(t, known, all.ForTag("acme"))
	rateHolder{rpm}.SetQuotas(quotas(0))
	require.Zero(t, total())
	rateHolder{rpm}.SetQuotas(quotas(3))
	require.Equal(t, 3, total())
}

// A limiter that a program has kept goes by quotas that have changed: of a tag that has got one, and of one that has lost it.
func TestAKeptLimiterGoesByChangedQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := Quotas{Tags: map[string]Quota{"y": {}, "z": {}}, Other: Quota{Total: 20}}
		th := whole(t, Limit{Max: 1000}, WithQuotas(begin))
		rate := func(l Limiter) (n int) {
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if p, err := l.Acquire(soon(t), 1); err == nil {
					n += p.N()
				}
			}
			return n / 5
		}
		kept := map[string]Limiter{
			"alone": th.ForTag("x"), "two": th.ForTags("y", "x"), "none beside it": th.ForTags("", "x"), "five": th.ForTags("y", "x", "z", "", "y"),
		}
		for name, l := range kept {
			require.InDelta(t, 20, rate(l), 1, name)
		}
		rateHolder{th}.SetQuotas(Quotas{Tags: map[string]Quota{"x": {Total: 5}, "y": {}, "z": {}}, Other: Quota{Total: 20}}.WithDefaults(time.Second))
		for name, l := range kept {
			require.InDelta(t, 5, rate(l), 1, name)
		}
		own := th.ForTag("x")
		rateHolder{th}.SetQuotas(begin.WithDefaults(time.Second))
		for name, l := range kept {
			require.InDelta(t, 20, rate(l), 1, name)
		}
		require.InDelta(t, 20, rate(own), 1)
		require.InDelta(t, 20, rate(th.ForTag("")), 1, "all other tags are there, whatever changes")
	})
}

// soon is a context that ends before another token is earned.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
