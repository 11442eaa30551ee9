package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantile(t *testing.T) {
	values := []int{5, 1, 4, 2, 3, 6, 7, 8, 9, 10}
	for name, c := range map[string]struct {
		q    float64
		want int
	}{
		"smallest":  {0, 1},
		"a tenth":   {0.1, 1},
		"above it":  {0.11, 2},
		"half":      {0.5, 5},
		"p99":       {0.99, 10},
		"largest":   {1, 10},
		"above one": {2, 10},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, quantile(values, c.q)) })
	}
	require.Zero(t, quantile([]int{}, 0.5))
	require.Equal(t, 5, values[0], "the values stay as they are")
	require.Equal(t, 2, median([]int{3, 2, 1}))
}

func TestRatios(t *testing.T) {
	require.Equal(t, []float64{2, 0.5}, ratios([]float64{4, 1}, []float64{2, 2}))
}

func TestUncertainty(t *testing.T) {
	require.True(t, math.IsInf(uncertainty(nil), 1))
	require.True(t, math.IsInf(uncertainty([]float64{1}), 1))
	require.Zero(t, uncertainty([]float64{2, 2, 2}))
	require.InDelta(t, 1.96*math.Sqrt(5.0/3/4), uncertainty([]float64{1, 2, 3, 4}), 1e-12)

	// Of a hundred means of samples from one distribution, 95 more or less are no further off.
	random := rand.New(rand.NewPCG(1, 2))
	within := 0
	for range 10_000 {
		values := make([]float64, 20)
		var mean float64
		for i := range values {
			values[i] = 5 + random.NormFloat64()
			mean += values[i] / 20
		}
		if math.Abs(mean-5) <= uncertainty(values) {
			within++
		}
	}
	require.InDelta(t, 9350, within, 100, "a little less than 9,500, for the deviation is that of the sample")
}

// every returns n moments, the first at from and then one after each step.
func every(from, step time.Duration, n int) []time.Duration {
	var out []time.Duration
	for i := range n {
		out = append(out, from+time.Duration(i)*step)
	}
	return out
}

func TestLargestWindow(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		moments []time.Duration
		want    int
	}{
		"none":               {nil, 0},
		"one":                {every(0, 0, 1), 1},
		"steady":             {every(0, 100*ms, 50), 10},
		"the end is outside": {[]time.Duration{0, time.Second}, 1},
		"just inside":        {[]time.Duration{0, time.Second - 1}, 2},
		"at one moment":      {every(0, 0, 7), 7},
		"across a border":    {append(every(900*ms, ms, 5), every(1100*ms, ms, 5)...), 10},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, worstSecond(c.moments)) })
	}
}

func TestBetween(t *testing.T) {
	moments := every(0, time.Second, 10)
	require.Equal(t, 3, between(moments, 2*time.Second, 5*time.Second), "from is inside, to is not")
	require.Equal(t, 10, between(moments, 0, time.Hour))
	require.Zero(t, between(nil, 0, time.Hour))
}

func TestReached(t *testing.T) {
	const slow, fast = 100 * time.Millisecond, 10 * time.Millisecond
	steady := append(every(0, slow, 30), every(3*time.Second, fast, 500)...)
	after, ok := reached(steady, time.Second, 8*time.Second, 95)
	require.True(t, ok)
	require.InDelta(t, 2*time.Second, after, float64(50*time.Millisecond))

	_, ok = reached(every(0, slow, 100), 0, 8*time.Second, 95)
	require.False(t, ok, "never")

	burst := append(every(0, 0, 100), every(0, slow, 80)...)
	_, ok = reached(burst[:100], 0, 8*time.Second, 95)
	require.True(t, ok, "a hundred in the first second are a rate of a hundred")
	_, ok = reached(every(2*time.Second, 0, 50), 0, 8*time.Second, 95)
	require.False(t, ok, "a short burst is no rate")
}
