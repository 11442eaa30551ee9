package throttle

import (
	"fmt"
	"math"
	"sync"
)

// An Estimator guesses what the next call will cost from what the last ones did
// cost, for costs that are known only after the call: Acquire the estimate, Settle
// the real cost, Observe it. All methods may be called from any number of goroutines at
// once.
//
// It is an exponentially smoothed average: each observation moves the estimate towards it
// by the same part of the difference,
//
//	estimate += (used - estimate) x (1 - e^(-1/10))
//
// so that the newest counts for a tenth or so, and one that lies ten back for e times
// less. That is the Smoother of FoundationDB's throttling
// (github.com/apple/foundationdb, fdbrpc/include/fdbrpc/Smoother.h) with an e-folding
// time of ten, counted in observations in place of seconds: an idle time tells nothing
// about costs.
type Estimator struct {
	most float64

	mu       sync.Mutex
	estimate float64
}

// eFolding is the number of observations after which what was before counts for
// 1/e.
const eFolding = 10

// NewEstimator returns an Estimator that begins with the estimate first and never
// goes above most, whatever is observed: 1 <= first <= most <= 1e9. The error names
// what is out of bounds.
func NewEstimator(first, most int) (*Estimator, error) {
	if most < 1 || most > maxTokens {
		return nil, fmt.Errorf("throttle: largest estimate is %d, allowed: 1 to 1000000000", most)
	}
	if first < 1 || first > most {
		return nil, fmt.Errorf("throttle: first estimate is %d, allowed: 1 to %d, the largest", first, most)
	}
	return &Estimator{most: float64(most), estimate: float64(first)}, nil
}

// Estimate returns what the next call will probably cost, rounded: at least 1.
func (e *Estimator) Estimate() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(1, int(math.Round(e.estimate)))
}

// Observe takes note of what a call did cost. A negative cost counts as 0, and one above
// the largest estimate as that.
func (e *Estimator) Observe(used int) {
	x := min(max(float64(used), 0), e.most)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.estimate += (x - e.estimate) * -math.Expm1(-1.0/eFolding)
}
