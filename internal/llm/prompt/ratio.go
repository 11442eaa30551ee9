package prompt

import (
	"math"
	"sync"
)

// A Ratio learns how many tokens a byte of text takes, from whole answers: an exponentially smoothed average over about the last twenty,
// between 0.05 and 1, which begins with 0.25. It needs no vocabulary, and follows the model, the language and, where cached text is free,
// the part of it that comes from a cache. The zero Ratio is ready. All methods may be called from any number of goroutines at once.
type Ratio struct {
	mu      sync.Mutex
	learned float64 // the difference from firstPerByte
}

const (
	firstPerByte = 0.25
	mostPerByte  = 1
	// weight is how much the newest answer counts. So a hundred answers move the ratio to within 1 % of a step, and a wrong one moves it by
	// less than 0.05.
	weight = 0.05
)

// PerByte returns the tokens of a byte.
func (r *Ratio) PerByte() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return firstPerByte + r.learned
}

// Tokens returns the estimate for a prompt.
func (r *Ratio) Tokens(s Size) int64 {
	return int64(min(math.Ceil(r.PerByte()*float64(s.Bytes))+float64(s.Tokens), Most))
}

// Learn records how many tokens a call was charged for its prompt. A prompt with media, or none, teaches nothing.
func (r *Ratio) Learn(s Size, charged int64) {
	if s.Tokens > 0 || s.Bytes <= 0 {
		return
	}
	seen := min(max(float64(charged)/float64(s.Bytes), LeastPerByte), mostPerByte)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.learned += weight * (seen - firstPerByte - r.learned)
}
