package limit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
)

func TestFind(t *testing.T) {
	q := Quotas{
		Tags:  map[string]Quota{"free/gold": {Total: 1}, "": {Total: 9}},
		Match: []QuotaPattern{{"free/*", Quota{Total: 2}}, {"free/b*", Quota{Total: 3}}, {"*", Quota{Total: 4}}, {"[", Quota{Total: 5}}},
		Other: Quota{Total: 6},
	}
	for tag, want := range map[string]struct {
		name  string
		total int
	}{
		"free/gold": {"free/gold", 1}, // its own comes before a pattern
		"free/bob":  {"free/bob", 2},  // the first pattern that matches
		"x":         {"x", 4},
		"a/b":       {"", 6}, // a star matches no slash
		"":          {"", 6},
		"free/\xff": {"", 6}, "free/\n": {"", 6},
		strings.Repeat("x", 64): {strings.Repeat("x", 64), 4}, strings.Repeat("x", 65): {"", 6},
	} {
		name, quota := q.Find(tag)
		require.Equal(t, want.name, name, "%q", tag)
		require.Equal(t, want.total, quota.Total, "%q", tag)
	}
	require.True(t, Quotas{Tags: map[string]Quota{}}.None())
	require.True(t, Quotas{Tags: map[string]Quota{}}.Given())
	require.True(t, Quotas{Other: Quota{Total: 1}}.Given())
	require.False(t, Quotas{}.Given())
	require.False(t, Quotas{Other: Quota{Shadow: true}}.None())
	require.False(t, q.None())
}

func TestWithDefaults(t *testing.T) {
	q := Quotas{
		Tags:  map[string]Quota{"a": {Total: 400, Budgets: []Budget{{Amount: 1, Per: PeriodDay}}}, "b": {Total: 5, Per: time.Second}},
		Match: []QuotaPattern{{Tag: "*"}},
	}
	full := q.WithDefaults(time.Minute)
	require.Equal(t, Quota{
		Total: 400, Burst: 1, Per: time.Minute, Weight: 1, Class: ClassInteractive,
		Budgets: []Budget{{Amount: 1, Per: PeriodDay, Zone: "UTC", Then: ThenRefuse}},
	}, full.Tags["a"])
	require.Equal(t, 1, full.Tags["b"].Burst, "at least one")
	require.Equal(t, time.Second, full.Tags["b"].Per)
	require.Equal(t, QuotaPattern{"*", Quota{Per: time.Minute, Weight: 1, Class: ClassInteractive}}, full.Match[0])
	require.Equal(t, Quota{Per: time.Minute, Weight: 1, Class: ClassInteractive}, full.Other, "without a total nothing can be saved up")
	require.Equal(t, full, full.WithDefaults(time.Hour))
	require.Zero(t, q.Tags["a"].Per, "the quotas that were given stay as they are")
	require.Empty(t, q.Tags["a"].Budgets[0].Zone)
	require.Zero(t, q.Match[0].Per)

	require.Equal(t, Quota{Total: 1e9, Burst: 1e8, Per: time.Second, Weight: 1, Class: ClassInteractive}, Quota{Total: 1e9}.WithDefaults(0))
}

// W of Per is the window of the promise: what a tag bucket lets through in it, with the burst and one draw, is at most Total.
func TestEnforced(t *testing.T) {
	total, per, burst := Quota{Total: 400, Burst: 30, Per: time.Minute}.Enforced()
	require.Equal(t, []any{int64(400), time.Minute, int64(30)}, []any{total, per, burst})
	total, per, burst = Quota{Total: 400}.Enforced()
	require.Equal(t, []any{int64(400), time.Second, int64(40)}, []any{total, per, burst})
	total, _, burst = Quota{Reserved: 4, Hard: true}.Enforced()
	require.Zero(t, total)
	require.Zero(t, burst)
	require.Zero(t, Quota{Total: 400}.Largest())

	const h = 2500 * time.Millisecond
	for _, q := range []Quota{
		{Total: 3, Per: 10 * time.Second},
		{Total: 100, Burst: 50, Per: time.Minute},
		{Total: 100_000, Per: time.Minute},
		{Total: 1e9, Burst: 1e9, Per: 31 * 24 * time.Hour},
		{Total: 1e9, Burst: 1e9, Per: 10 * time.Second},
	} {
		q.Hard = true
		total, per, burst := q.Enforced()
		window := q.Per.Seconds() + 2*h.Seconds()*1.0833 + h.Seconds()
		most := float64(total)*window/per.Seconds() + float64(burst) + float64(q.Largest())
		require.LessOrEqual(t, most, float64(q.Total)+1e-6, "%+v", q)
		require.Positive(t, total)
		require.Positive(t, burst)
		require.Equal(t, burst, q.Largest())
		require.LessOrEqual(t, per, bounds.MaxPer)
		// Long windows lose little but the burst and the draw.
		if q.Total > 10 {
			require.GreaterOrEqual(t, most, float64(q.Total)*0.99, "%+v", q)
		}
	}
}

func TestJSON(t *testing.T) {
	q := Quotas{
		Tags: map[string]Quota{
			"acme": {Reserved: 200, Total: 400, Burst: 7, Per: time.Minute, Weight: 2, Class: ClassBatch, Hard: true, Shadow: true, Budgets: []Budget{
				{Amount: 1e15, Per: PeriodDay, Zone: "Europe/Berlin", Then: ThenLower}, {Amount: 5, Per: PeriodHour},
			}},
			"none": {},
		},
		Match: []QuotaPattern{{"free/*", Quota{Total: 10}}},
		Other: Quota{Total: 50},
	}
	text, err := json.Marshal(q)
	require.NoError(t, err)
	require.JSONEq(t, `{"tags":{"acme":{"reserved":200,"total":400,"burst":7,"per":"1m0s","weight":2,"class":"batch","hard":true,"shadow":true,
		"budgets":[{"amount":1000000000000000,"per":"day","zone":"Europe/Berlin","then":"batch"},{"amount":5,"per":"hour"}]},"none":{}},
		"match":[{"tag":"free/*","total":10}],"other":{"total":50}}`, string(text))
	var back Quotas
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, q, back)

	text, err = json.Marshal(Quotas{})
	require.NoError(t, err)
	require.Equal(t, "{}", string(text))
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, Quotas{}, back, "what was there before is gone")

	for _, wrong := range []string{
		`{"tag":{}}`, `{"tags":{"a":{"tag":"b"}}}`, `{"tags":{"a":{"rserved":1}}}`, `{"other":{"per":"1"}}`, `{"match":[{"x":1}]}`,
		`{"match":[{"per":"x"}]}`, `{"other":{"budgets":[{"amount":1,"per":"day","x":1}]}}`, `{"other":{"total":1.5}}`, `[]`,
	} {
		before := back
		require.Error(t, json.Unmarshal([]byte(wrong), &back), wrong)
		require.Equal(t, before, back, wrong)
	}
}

// A total of 0 blocks in JSON, and none is no total: so it is in files and documents. In Go 0 is no total, as it was.
func TestBlocked(t *testing.T) {
	text, err := json.Marshal(Quotas{Tags: map[string]Quota{"a": {Blocked: true, Reserved: 5}, "b": {}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"tags":{"a":{"reserved":5,"total":0},"b":{}}}`, string(text))
	var back Quotas
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, map[string]Quota{"a": {Blocked: true, Reserved: 5}, "b": {}}, back.Tags)
	require.NoError(t, back.Validate(100, 0), "what is reserved is no fault of a tag that is blocked")
	require.NoError(t, Quotas{Other: Quota{Blocked: true, Burst: 5, Hard: true}}.Validate(100, 0))
	require.ErrorContains(t, Quotas{Other: Quota{Blocked: true, Total: 5}}.Validate(100, 0), "quotas.other.blocked is true, allowed: false with total")
	require.False(t, Quotas{Other: Quota{Blocked: true}}.None())

	require.InDelta(t, 0.55, Quota{Total: 1000, Burst: 1, Per: 10 * time.Second, Hard: true}.Kept(), 0.01)
	require.InDelta(t, 0.88, Quota{Total: 600, Burst: 1, Per: time.Minute, Hard: true}.Kept(), 0.01)
	require.InDelta(t, 1, Quota{Total: 600, Per: time.Minute}.Kept(), 0)
}
