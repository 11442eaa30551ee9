package throttle

import (
	"fmt"
	"math"
	"sync"
)

// An Estimator guesses the cost of the next call from the last ones, for costs that are known only after the call: Acquire the estimate,
// Settle the real cost, Observe it. All methods may be called from any number of goroutines at once.
//
// It is an exponentially smoothed average: each observation moves the estimate towards it by the same part of the difference,
//
//	estimate += (used - estimate) x (1 - e^(-1/10))
//
// so that the newest counts for about a tenth, and one that lies ten back for e times less. That is the Smoother of FoundationDB's
// throttling (github.com/apple/foundationdb, fdbrpc/include/fdbrpc/Smoother.h) with an e-folding time of ten. It counts observations
// instead of seconds, because idle time says nothing about costs.
type Estimator struct {
	most float64

	mu       sync.Mutex
	estimate float64
}

// eFolding is the number of observations after which earlier ones count for 1/e.
const eFolding = 10

// NewEstimator returns an Estimator that begins with the estimate first and never goes above most: 1 <= first <= most <= 1e9. The error
// names the value out of bounds.
func NewEstimator(first, most int) (*Estimator, error) {
	if most < 1 || most > maxTokens {
		return nil, fmt.Errorf("throttle: largest estimate is %d, allowed: 1 to 1000000000", most)
	}
	if first < 1 || first > most {
		return nil, fmt.Errorf("throttle: first estimate is %d, allowed: 1 to %d, the largest", first, most)
	}
	return &Estimator{most: float64(most), estimate: float64(first)}, nil
}

// Estimate returns the likely cost of the next call, rounded: at least 1.
func (e *Estimator) Estimate() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(1, int(math.Round(e.estimate)))
}

// Observe records the cost of a call. A negative cost counts as 0, and one above the largest estimate as that.
func (e *Estimator) Observe(used int) {
	x := min(max(float64(used), 0), e.most)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.estimate += (x - e.estimate) * -math.Expm1(-1.0/eFolding)
}
