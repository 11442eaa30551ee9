package autoscale

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hpa is a HorizontalPodAutoscaler on sum(numathrottle_pods_wanted) with an AverageValue of 1, with the defaults of Kubernetes. A ScaledObject
// of KEDA makes such a one.
type hpa struct {
	min, max int
	advised  []int // in the last five minutes
}

func (h *hpa) every() time.Duration { return 15 * time.Second }

// next implements scaler.
func (h *hpa) next(v view) int {
	desired := v.replicas
	if len(v.wanted) > 0 {
		sum := 0.0
		for _, pods := range v.wanted {
			sum += pods
		}
		if math.Abs(sum/float64(v.replicas)-1) > 0.1 {
			desired = int(math.Ceil(sum))
		}
	}
	desired = min(max(desired, h.min), h.max)
	const stabilization = 5 * time.Minute
	h.advised = append(h.advised, desired)
	h.advised = h.advised[max(len(h.advised)-int(stabilization/h.every()), 0):]
	for _, advised := range h.advised {
		desired = max(desired, min(advised, v.replicas)) // down only to the highest of them
	}
	return min(desired, max(2*v.replicas, v.replicas+4))
}

func TestTheModelOfTheHPA(t *testing.T) {
	h := &hpa{min: 1, max: 10}
	require.Equal(t, 2, h.next(view{replicas: 2}), "no pod says anything")
	require.Equal(t, 2, h.next(view{replicas: 2, wanted: []float64{1, 1.1}}), "near enough")
	require.Equal(t, 4, h.next(view{replicas: 2, wanted: []float64{2, 1.5}}))
	for range 19 {
		require.Equal(t, 4, h.next(view{replicas: 4, wanted: []float64{0.1, 0}}), "not down before five minutes have passed")
	}
	require.Equal(t, 1, h.next(view{replicas: 4, wanted: []float64{0.1, 0}}))
}
