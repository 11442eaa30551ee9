package prompt

import (
	"math"
	"sync"
)

// Answers learns how long answers are: the mean of the first twenty with an assumed one before them, then an exponentially smoothed average.
// All methods may be called from any number of goroutines at once.
type Answers struct {
	first float64

	mu   sync.Mutex
	seen int
	mean float64
}

// mostAnswer is the longest answer that counts, in tokens.
const mostAnswer = 1_000_000

// NewAnswers returns Answers that assume so many tokens for the first.
func NewAnswers(first int) *Answers { return &Answers{first: float64(first), mean: float64(first)} }

// Tokens returns the likely length of the next answer to a request: at least 1, and at most the request's bound; 0 for a call without a text.
func (a *Answers) Tokens(s Size) int64 {
	if s.Silent {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n := int64(math.Ceil(a.mean))
	if s.Answer > 0 {
		n = min(n, s.Answer)
	}
	return max(n, 1)
}

// Longest returns the longest answer to a request: its own bound, else the likely length, at most the assumption for the first answer.
func (a *Answers) Longest(s Size) int64 {
	if s.Answer > 0 || s.Silent {
		return min(s.Answer, Most)
	}
	return min(a.Tokens(s), int64(a.first))
}

// Learn records the length of an answer; none teaches nothing.
func (a *Answers) Learn(tokens int64) {
	if tokens <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = min(a.seen+1, int(1/weight))
	part := max(1/float64(a.seen+1), weight)
	a.mean += part * (min(float64(tokens), mostAnswer) - a.mean)
}
