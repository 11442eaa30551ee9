package autoscale

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A scaler says how many replicas a vertex should have.
type scaler interface {
	next(v view) int
	every() time.Duration
}

// A view is what a scaler sees of a vertex.
type view struct {
	rate     float64 // messages read per second, over the lookback; negative: not known yet
	pending  int     // messages in the buffer, those in flight included
	replicas int
	wanted   []float64     // numathrottle_pods_wanted of each pod that has it
	since    time.Duration // since the last change of the replicas
}

// numaflow is Numaflow's scaler for a map vertex, with its settings.
type numaflow struct {
	min, max int
	rateMax  int // limits.rateLimit.max; 0: none
	step     int // replicasPerScaleUp and replicasPerScaleDown
}

// The scaler's defaults.
const (
	bufferLength     = 3000 // limits.bufferMaxLength of the tests
	bufferUsage      = bufferLength * 8 / 10
	targetAvailable  = bufferLength / 2
	targetProcessing = 20.0
	cooldown         = 90 * time.Second
)

func (s numaflow) every() time.Duration { return 30 * time.Second }

// next implements scaler.
func (s numaflow) next(v view) int {
	switch {
	case v.since < cooldown:
		return v.replicas
	case v.replicas == 0:
		return min(v.pending, 1)
	case v.rate < 0:
		return v.replicas
	}
	desired := s.desired(v)
	if s.rateMax > 0 && math.Ceil(v.rate) >= float64(s.rateMax) && desired > v.replicas {
		return v.replicas // at the limit: more pods would not read more
	}
	desired = min(max(desired, s.min), s.max)
	return min(max(desired, v.replicas-s.step), v.replicas+s.step)
}

func (s numaflow) desired(v view) int {
	switch {
	case v.pending == 0 && v.rate == 0:
		return 0
	case v.pending == 0 || v.rate == 0:
		return 1
	}
	var desired int
	switch {
	case v.pending <= bufferLength-targetAvailable:
		desired = int(math.Round(float64(v.pending) / v.rate / targetProcessing * float64(v.replicas)))
	case v.pending >= bufferUsage:
		desired = v.replicas + s.step
	default:
		desired = int(math.Round(targetAvailable / (float64(bufferUsage-v.pending) / float64(v.replicas))))
	}
	return min(max(desired, 1), v.pending)
}

// rateMax is what docs/autoscaling.md says about limits.rateLimit.max: 98 % of the messages that the limit lets through in a second, rounded up.
func rateMax(limit float64) int { return int(math.Ceil(0.98 * limit)) }

// At the rates that the real core reached, the hint keeps the scaler from adding pods; a pod that can't use the limit alone gets help.
func TestTheHintAgainstRecordedRates(t *testing.T) {
	full := func(rate float64) view { return view{rate: rate, pending: bufferUsage, replicas: 2, since: time.Hour} }
	for _, c := range []struct {
		limit, rate float64
		pods        int
		why         string
	}{
		{50, 49.95, 2, "a pipeline's map in two pods, v1.8.3"},
		{50, 50.05, 2, "the same, measured again"},
		{50, 49.5, 2, "the least that a busy pool is promised to use"},
		{50, 48.55, 2, "a map in a MonoVertex with defaults"},
		{50, 36, 3, "a map in a MonoVertex with small batches leaves a part of the limit"},
		{50, 25, 3, "one pod with 100 calls of 4 s at once"},
		{500.0 / 60, 8.33, 2, "500 requests a minute"},
		{500.0 / 60, 7.9, 3, "less than 8 a second are not all of them"},
		{1000, 990, 2, "the least that a busy pool is promised to use"},
		{1000, 950, 3, "less"},
	} {
		s := numaflow{min: 1, max: 10, rateMax: rateMax(c.limit), step: 1}
		require.Equal(t, c.pods, s.next(full(c.rate)), c.why)
		s.rateMax = int(math.Ceil(1.1 * c.limit))
		require.Equal(t, 3, s.next(full(c.rate)), "a hint above the limit is never reached: %s", c.why)
	}
	idle := view{rate: 5, pending: 5, replicas: 4, since: time.Hour}
	require.Equal(t, 3, numaflow{min: 1, max: 10, rateMax: 49, step: 1}.next(idle), "the hint does not keep pods that are not needed")
	require.Equal(t, 1, numaflow{max: 10, rateMax: 49, step: 1}.next(view{pending: 1, since: time.Hour}), "from zero")
}
