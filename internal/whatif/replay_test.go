package whatif

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var start = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)

// constant is traffic of constant rates for some minutes, at one token per call.
func constant(minutes int, rates map[string]float64) *Traffic {
	t := &Traffic{Start: start, Minutes: minutes}
	for _, name := range []string{"a", "b", "c"} {
		if rates[name] == 0 {
			continue
		}
		tag := TagTraffic{Name: name}
		for i := range minutes {
			tag.Minutes = append(tag.Minutes, Minute{i, rates[name], 1})
		}
		t.Tags = append(t.Tags, tag)
	}
	return t
}

func replayed(t *testing.T, tr *Traffic, conf opening.Config, o Options) *Result {
	t.Helper()
	o.Pods = max(o.Pods, 1)
	res, err := Replay(t.Context(), tr, &conf, o)
	require.NoError(t, err)
	for i := range res.Tags {
		require.InDelta(t, res.Tags[i].Calls, res.Tags[i].Granted+res.Tags[i].Refused+res.Tags[i].Left, 1e-6)
	}
	return res
}

func seconds(s float64) float64 { return s * float64(time.Second) }

// Calls that come faster than the limit wait in line: the last of ten minutes' calls, at 1200 a second with 1000 allowed, for two minutes.
func TestWaitsOfALine(t *testing.T) {
	for name, o := range map[string]Options{
		"every call by itself": {}, "calls draw together": {MaxDraws: 10_000}, "at random moments": {Random: true}, "in a pool": {Pods: 3},
	} {
		t.Run(name, func(t *testing.T) {
			res := replayed(t, constant(10, map[string]float64{"a": 1200}), opening.Config{Limit: throttle.Limit{Max: 1000}}, o)
			require.InEpsilon(t, 720_000, res.All.Granted, 0.02)
			require.InEpsilon(t, 1, res.Use, 0.01)
			require.InEpsilon(t, seconds(60), res.All.P50, 0.07)
			require.InEpsilon(t, seconds(118.8), res.All.P99, 0.07)
			require.Zero(t, res.All.Refused+res.All.Left)
			if o.MaxDraws > 0 {
				require.Less(t, res.Draws, int64(30_000))
				require.Greater(t, res.Merged, 2)
			}
		})
	}
}

// Calls that draw together wait about as long as each would by itself, however much the limit can save up. A call after t seconds waits for
// the 2t that came beyond the limit, less the 100 tokens that were there.
func TestCallsThatDrawTogetherWaitAsLong(t *testing.T) {
	conf := opening.Config{Limit: throttle.Limit{Max: 10, Burst: 1000}}
	res := replayed(t, constant(20, map[string]float64{"a": 12}), conf, Options{})
	require.Less(t, res.Draws, int64(14_400), "they do draw together")
	require.InEpsilon(t, seconds((2*600-100)/10), res.All.P50, 0.02)
	require.InEpsilon(t, seconds((2*1188-100)/10), res.All.P99, 0.02)
}

// Below the limit nobody waits, whatever the resolution; there may be a burst of it.
func TestNobodyWaits(t *testing.T) {
	for _, draws := range []int64{0, 100_000} {
		res := replayed(t, constant(60, map[string]float64{"a": 40, "b": 30}), opening.Config{Limit: throttle.Limit{Max: 100}}, Options{MaxDraws: draws})
		require.Less(t, res.All.P99, time.Millisecond)
		require.InEpsilon(t, 0.7, res.Use, 0.01)
	}
}

// With patience, calls that cannot be served in time are refused.
func TestRefusals(t *testing.T) {
	res := replayed(t, constant(10, map[string]float64{"a": 15}), opening.Config{Limit: throttle.Limit{Max: 10}}, Options{MaxWait: 5 * time.Second})
	require.InEpsilon(t, 3000, res.All.Refused, 0.05)
	require.InEpsilon(t, seconds(5), res.All.P50, 0.05)
	require.LessOrEqual(t, res.All.Longest, 5*time.Second)
	most, _ := res.All.Reason()
	require.Equal(t, throttle.ReasonLimit, most)
}

// Quotas hold, with a pool and without: a reservation beside a hog, a total, a budget.
func TestQuotas(t *testing.T) {
	conf := opening.Config{Limit: throttle.Limit{Max: 100}, Quotas: throttle.Quotas{Tags: map[string]throttle.Quota{
		"a": {Reserved: 40}, "b": {Total: 20, Budgets: []limit.Budget{{Amount: 6000, Per: "hour"}}},
	}}}
	for _, pods := range []int{1, 4} {
		res := replayed(t, constant(10, map[string]float64{"a": 38, "b": 25, "c": 300}), conf, Options{Pods: pods, MaxWait: 10 * time.Second})
		a, b, c := res.Tags[0], res.Tags[1], res.Tags[2]
		require.GreaterOrEqual(t, a.Granted, 0.97*38*600)
		require.Less(t, a.P50, time.Second)
		require.InEpsilon(t, 6000, b.Tokens, 0.02, "its budget, though its total allows twice as much")
		require.InEpsilon(t, 6000, b.Budgets[0].Spent, 0.02)
		require.Equal(t, start, b.Budgets[0].Window)
		require.Positive(t, b.Reasons[throttle.ReasonBudget])
		require.InEpsilon(t, seconds(10), c.P50, 0.1)
		require.Greater(t, res.Use, 0.97)
	}
}

// What nothing serves ends with the replay.
func TestNeverServed(t *testing.T) {
	conf := opening.Config{Limit: throttle.Limit{Max: 100}, Quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"a": {Blocked: true}}}}
	res := replayed(t, constant(2, map[string]float64{"a": 10, "b": 10}), conf, Options{})
	require.InEpsilon(t, 1200, res.Tags[0].Left, 0.05)
	require.Zero(t, res.Tags[1].Left)
	require.Equal(t, res, replayed(t, constant(2, map[string]float64{"a": 10, "b": 10}), conf, Options{}), "it comes out the same each time")
}

// Strict limits are issued by the store one by one, and other modes run too.
func TestModes(t *testing.T) {
	for name, conf := range map[string]opening.Config{
		"strict": {Limit: throttle.Limit{Max: 10, Strict: true, MaxReserved: 10}}, "hard": {Limit: throttle.Limit{Max: 600, Per: time.Minute, Hard: true}},
		"even": {Limit: throttle.Limit{Max: 10}, Policy: opening.PolicyEven}, "static": {Limit: throttle.Limit{Max: 10}, Store: "static://2"},
		"no limit": {},
	} {
		res := replayed(t, constant(5, map[string]float64{"a": 6}), conf, Options{Pods: 2})
		require.InEpsilon(t, 1800, res.All.Granted, 0.02, name)
		require.Less(t, res.All.P50, 300*time.Millisecond, name)
	}
}

func TestBadOptions(t *testing.T) {
	_, err := Replay(t.Context(), constant(1, map[string]float64{"a": 1}), &opening.Config{}, Options{})
	require.EqualError(t, err, "pods is 0, allowed: 1 to 100")
}

// The page shows no foreign text as markup, and loads nothing.
func TestPage(t *testing.T) {
	tr := constant(3, map[string]float64{"a": 5, "b": 1})
	tr.Tags[0].Name = `<script>alert("x")</script>`
	conf := opening.Config{Limit: throttle.Limit{Max: 4}}
	r := &Report{
		Traffic: tr, Before: Recorded(tr, &conf), After: replayed(t, tr, conf, Options{}), BeforeName: "recorded", AfterName: "<new>.yaml",
		Options: Options{Pods: 1},
	}
	var page, table bytes.Buffer
	require.NoError(t, r.WritePage(&page))
	require.NoError(t, r.WriteTable(&table))
	html := page.String()
	require.NotContains(t, html, "<script")
	require.Contains(t, html, "&lt;new&gt;.yaml")
	require.Equal(t, 5, strings.Count(html, "<svg"), "three plots, and one for each tag")
	require.NotRegexp(t, `(?i)(src|href|url\(|@import|https?://)`, html)
	require.Contains(t, table.String(), "150.0 %", "the recording, by the limit")
	require.Contains(t, table.String(), "alert(")
	require.ErrorIs(t, r.WritePage(failing{}), errFull)
}

var errFull = errors.New("full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

var _ io.Writer = failing{}

func TestQuantiles(t *testing.T) {
	var w waits
	for i := range 10_000 {
		w.add(time.Duration(i)*time.Millisecond, 1)
	}
	require.InEpsilon(t, seconds(5), w.quantile(0.5), 0.02)
	require.InEpsilon(t, seconds(9.9), w.quantile(0.99), 0.02)
	require.Zero(t, (&waits{}).quantile(0.5))
}
