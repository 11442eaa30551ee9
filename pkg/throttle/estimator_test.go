package throttle

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// By hand: 1 - e^(-1/10) is 0.0951626.
func TestEstimator(t *testing.T) {
	for _, tc := range []struct {
		first, most int
		used        []int
		want        float64
	}{
		{1200, 8000, nil, 1200},
		{1000, 8000, []int{2000}, 1095.1626},
		{1000, 8000, []int{2000, 2000}, 1181.2692}, // 2000 - 1000 e^(-2/10)
		{1000, 8000, []int{0}, 904.8374},
		{1000, 8000, []int{-5}, 904.8374},
		{1000, 8000, []int{1_000_000}, 1666.1380}, // as 8000
		{1000, 8000, []int{1 << 62}, 1666.1380},
		{100, 1000, []int{1000, 0}, 167.9400},                                          // 185.6463 e^(-1/10)
		{100, 1000, []int{200, 200, 200, 200, 200, 200, 200, 200, 200, 200}, 163.2121}, // 200 - 100/e
		{50, 50, []int{70, 80}, 50},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			e, err := NewEstimator(tc.first, tc.most)
			require.NoError(t, err)
			for _, used := range tc.used {
				e.Observe(used)
			}
			require.InDelta(t, tc.want, e.estimate, 0.05)
			require.InDelta(t, tc.want, float64(e.Estimate()), 0.55)
		})
	}
}

func TestEstimatorStaysInBounds(t *testing.T) {
	e, err := NewEstimator(3, 10)
	require.NoError(t, err)
	for range 1000 {
		e.Observe(0)
	}
	require.Equal(t, 1, e.Estimate(), "a draw of nothing would not wait")
	for range 1000 {
		e.Observe(1 << 62)
	}
	require.Equal(t, 10, e.Estimate())
	for range 1000 {
		e.Observe(7)
	}
	require.Equal(t, 7, e.Estimate())
	for _, ok := range [][2]int{{1, 1}, {1, maxTokens}, {maxTokens, maxTokens}} {
		_, err := NewEstimator(ok[0], ok[1])
		require.NoError(t, err)
	}
	for _, bad := range [][2]int{{0, 10}, {11, 10}, {-1, 10}, {1, 0}, {1, maxTokens + 1}} {
		_, err := NewEstimator(bad[0], bad[1])
		require.ErrorContains(t, err, "allowed: 1 to", "%v", bad)
	}
}

func TestEstimatorFromManyGoroutines(t *testing.T) {
	e, err := NewEstimator(500, 1000)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				e.Observe(100)
				_ = e.Estimate()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 100, e.Estimate())
}
