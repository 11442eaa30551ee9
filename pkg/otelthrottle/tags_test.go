package otelthrottle_test

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// underQuotas returns a watched throttle whose tags have quotas.
func (c *collector) underQuotas(l throttle.Limit, q throttle.Quotas, tags ...string) *throttle.Throttle {
	c.t.Helper()
	th, err := throttle.New(l, throttle.WithName("llm"), throttle.WithQuotas(q))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, th.Close()) })
	c.t.Cleanup(c.watch(otelthrottle.Watched{Throttle: th, Tags: tags}))
	return th
}

// Tags that are configured are told apart, the first hundred of them; all others are one.
func TestTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t)
		q := throttle.Quotas{
			Tags:  map[string]throttle.Quota{"t000": {Total: 10, Budgets: []throttle.Budget{{Amount: 100, Per: "day"}}}},
			Match: []throttle.QuotaPattern{{Tag: "free/*"}},
		}
		var names []string
		for i := range otelthrottle.MaxTags + 5 {
			name := fmt.Sprintf("t%03d", i)
			names = append(names, name)
			if i > 0 {
				q.Tags[name] = throttle.Quota{}
			}
		}
		th := c.underQuotas(throttle.Limit{Max: 1000, Burst: 1000}, q, names...)
		time.Sleep(10 * time.Second)
		_, err := th.ForTag("t000").Acquire(t.Context(), 1)
		require.NoError(t, err)
		_, ok := th.ForTag("t000").TryAcquire(1)
		require.False(t, ok)
		for _, other := range []string{"t104", "free/a", "unknown", ""} {
			_, ok := th.ForTag(other).TryAcquire(2)
			require.True(t, ok, other)
		}
		got := map[string]float64{}
		for name, value := range c.collect() {
			if strings.HasPrefix(name, "numathrottle.quota.") && !strings.HasPrefix(name, "numathrottle.quota.target") {
				got[strings.TrimPrefix(name, "numathrottle.quota.")] = value
			}
		}
		require.Equal(t, map[string]float64{
			"used limit=llm tag=t000": 1, "throttled limit=llm tag=t000": 1, "spent limit=llm tag=t000": 0.01,
			"used limit=llm tag=other": 8, "throttled limit=llm tag=other": 0,
			"throttled.waits limit=llm reason=quota tag=t000": 0, "throttled.refusals limit=llm reason=quota tag=t000": 1,
			"throttled.time limit=llm reason=quota tag=t000": 0,
		}, got)
	})
}

// Tags of a limit on calls in flight have gauges of their own.
func TestTagsOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t)
		f, err := throttle.NewInFlight(10, throttle.WithName("llm"), throttle.WithQuotas(throttle.Quotas{
			Tags: map[string]throttle.Quota{"acme": {Total: 2}}, Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 1}}},
		}))
		require.NoError(t, err)
		t.Cleanup(c.watch(otelthrottle.Watched{InFlight: f, Tags: []string{"acme"}}))
		for _, tag := range []string{"acme", "acme", "free/1", "free/2", "x"} {
			_, ok := f.ForTag(tag).TryAcquire(1)
			require.True(t, ok)
		}
		_, ok := f.ForTag("acme").TryAcquire(1)
		require.False(t, ok)
		time.Sleep(3 * time.Second)
		got := map[string]float64{}
		for name, value := range c.collect() {
			if of, ok := strings.CutPrefix(name, "numathrottle.quota."); ok {
				got[of] = value
			}
		}
		require.Equal(t, map[string]float64{
			"used limit=llm tag=acme": 2, "throttled limit=llm tag=acme": 1, "slots.used limit=llm tag=acme": 2,
			"slots.allowed limit=llm tag=acme": 2, "slots.waiting limit=llm tag=acme": 0, "slots.longest limit=llm tag=acme": 3,
			"used limit=llm tag=other": 3, "throttled limit=llm tag=other": 0, "slots.used limit=llm tag=other": 3,
			"slots.waiting limit=llm tag=other": 0, "slots.longest limit=llm tag=other": 3,
		}, got)
	})
}

// What tags used that have made way for others is still counted, or the counter would stand still.
func TestTagsThatMadeWayAreCounted(t *testing.T) {
	testkit.SkipRace(t, "one goroutine looks through thousands of tags for each new one")
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t)
		th := c.underQuotas(throttle.Limit{Max: 7000, Burst: 7000}, throttle.Quotas{
			Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 1000, Burst: 1000}}},
		})
		used := 0
		for range 2 {
			time.Sleep(5 * time.Minute)
			for i := range 7000 { // of which 12,288 are told apart
				_, ok := th.ForTag(fmt.Sprint("free/", used)).TryAcquire(1)
				require.True(t, ok, i)
				used++
			}
			require.InDelta(t, used, c.collect()["numathrottle.quota.used limit=llm tag=other"], 0)
		}
		require.Positive(t, th.Status().TagsGone.Used)
	})
}

// What the called service takes of a tag that is slow is told for as long as it is slow, and of no other tag.
func TestWhatTheServiceTakesOfATag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t)
		th := c.underQuotas(throttle.Limit{Max: 1000, Burst: 1000, Adaptive: true}, throttle.Quotas{
			Tags: map[string]throttle.Quota{"a": {}, "b": {}},
		}, "a", "b")
		limiting := func() map[string]float64 {
			got := map[string]float64{}
			for name, value := range c.collect() {
				if of, ok := strings.CutPrefix(name, "numathrottle.quota.limiting limit=llm tag="); ok {
					got[of] = value
				}
			}
			return got
		}
		call := func(tag string, o throttle.Outcome) {
			p, ok := th.ForTag(tag).TryAcquire(1)
			require.True(t, ok)
			p.Report(o)
		}
		time.Sleep(time.Second)
		for _, tag := range []string{"a", "b", "", "unknown"} {
			call(tag, throttle.OutcomeAccepted)
		}
		require.Empty(t, limiting())
		for range 10 {
			call("a", throttle.OutcomeRefused)
		}
		var held float64
		for _, tag := range th.Status().Tags {
			held += tag.Limiting
		}
		require.Positive(t, held)
		require.Equal(t, map[string]float64{"a": held}, limiting())
		for range 40 { // nothing holds it back
			time.Sleep(time.Second)
			call("a", throttle.OutcomeAccepted)
		}
		require.Empty(t, limiting())
	})
}

// The span of a wait tells what the target of its tag is worked out from: of tags with a quota by name, and of each not more often than every
// five seconds, however many calls wait.
func TestSpansTellTargets(t *testing.T) {
	q := throttle.Quotas{
		Tags: map[string]throttle.Quota{
			"acme": {Reserved: 2, Total: 4, Weight: 3, Class: throttle.ClassBatch, Budgets: []throttle.Budget{{Amount: 1000, Per: "day"}}},
			"zeta": {Total: 60, Per: time.Minute},
		},
		Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 1}}},
	}
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprint("pooled ", pooled), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCollector(t)
				w := otelthrottle.Watched{Tags: []string{"acme", "zeta"}}
				opts := []throttle.Option{throttle.WithName("llm"), throttle.WithQuotas(q), throttle.WithObserver(c)}
				if pooled {
					var err error
					w.Member, err = consensus.Join(t.Context(), memstore.New(), "pool", consensus.WithLogger(slog.New(slog.DiscardHandler)))
					require.NoError(t, err)
					opts = append(opts, throttle.WithSharer(w.Member), throttle.OnClose(w.Member.Leave))
				}
				var err error
				w.Throttle, err = throttle.New(throttle.Limit{Max: 100}, opts...)
				require.NoError(t, err)
				defer func() { require.NoError(t, w.Throttle.Close()) }()
				stop := c.watch(w)
				time.Sleep(20 * time.Second)
				ctx, root := c.traces.Tracer("caller").Start(t.Context(), "call")
				draw := func(tag string) {
					_, err := w.Throttle.ForTag(tag).Acquire(ctx, 1)
					require.NoError(t, err)
				}
				for range 80 { // 20 s
					draw("acme")
				}
				draw("free/a")
				draw("free/a")
				for range 4 { // 4 s
					draw("zeta")
				}
				stop()
				for range 8 {
					draw("zeta")
				}
				root.End()

				reported := map[string]int{}
				var last map[string]string
				for _, span := range c.spans.Ended() {
					for _, e := range span.Events() {
						require.Equal(t, "numathrottle.wait", span.Name())
						require.Equal(t, "numathrottle.target", e.Name)
						is := map[string]string{}
						for _, kv := range e.Attributes {
							is[strings.TrimPrefix(string(kv.Key), "numathrottle.")] = kv.Value.String()
						}
						reported[is["tag"]]++
						if is["tag"] == "acme" {
							last = is
						}
					}
				}
				require.InDelta(t, 4, reported["acme"], 1, "in twenty seconds")
				require.Equal(t, 1, reported["zeta"], "not after the end of the watch")
				require.Len(t, reported, 2, reported)
				for key, want := range map[string]string{"reserved": "2", "total": "4", "limiting": "0", "weight": "3", "class": "batch", "budget": "1000"} {
					require.Equal(t, want, last[key], key)
				}
				for key, want := range map[string]float64{"demand": 5, "demand.here": 5, "used.here": 4} {
					got, err := strconv.ParseFloat(last[key], 64)
					require.NoError(t, err)
					require.InDelta(t, want, got, 5, key)
				}
				for _, key := range []string{"target", "by", "rate.here", "in_hand", "spent"} {
					require.NotEmpty(t, last[key], key)
				}
				require.Len(t, last, 16, last)
			})
		})
	}
}

// A wait for a tag's total is time for the reason quota, of the limit and of the tag. What many names may use together is no more than the
// limit, and they are one series.
func TestTimeAndTargetsOfTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t)
		th := c.underQuotas(throttle.Limit{Max: 100, Burst: 100}, throttle.Quotas{
			Tags:  map[string]throttle.Quota{"acme": {Total: 60, Per: time.Minute, Burst: 1}},
			Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 30}}},
		}, "acme")
		time.Sleep(time.Second)
		_, err := th.ForTag("acme").Acquire(t.Context(), 6) // one is at hand
		require.NoError(t, err)
		for range 50 {
			for i := range 30 {
				th.ForTag(fmt.Sprint("free/", i)).TryAcquire(10)
			}
			time.Sleep(100 * time.Millisecond)
		}
		got := c.collect()
		require.InDelta(t, 5, got["numathrottle.throttled.time limit=llm reason=quota"], 0.1)
		require.InDelta(t, 5, got["numathrottle.quota.throttled.time limit=llm reason=quota tag=acme"], 0.1)
		require.InDelta(t, 1, got["numathrottle.quota.throttled.waits limit=llm reason=quota tag=acme"], 0)
		target := got["numathrottle.quota.target limit=llm tag=other"]
		require.Positive(t, target)
		require.LessOrEqual(t, target, 100.0)
		require.Positive(t, got["numathrottle.quota.throttled.refusals limit=llm reason=quota tag=other"])
		for name := range got {
			require.NotContains(t, name, "free/")
		}
	})
}
