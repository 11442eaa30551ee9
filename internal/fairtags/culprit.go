package fairtags

import (
	"math"
	"time"
)

const (
	// blameFolding is the time in which all but 1/e of a Blame is forgotten.
	blameFolding = 5 * time.Second
	// blameMemory after the last refusal, the next one is the first.
	blameMemory = 30 * time.Second
	// sole is the part of the refused calls that is as good as all. A tag that made so much of them for
	// soleFor is the culprit, if they are soleCalls or more.
	sole      = 0.95
	soleFor   = time.Second
	soleCalls = 6
	// chance is how many times what chance makes of it a lead must be.
	chance = 3
)

// A Blame is how many tokens of calls were refused lately, of one tag or of all together. The zero Blame is none.
// Times are in nanoseconds of one clock.
type Blame struct {
	tokens, squares float64 // squares is the sum of the squares of the calls' tokens
	since, last     int64
	calls           int // since then
}

// Add counts a refused call of n tokens.
func (b *Blame) Add(now int64, n float64) {
	if b.tokens == 0 || now-b.last > int64(blameMemory) {
		*b = Blame{since: now}
	}
	b.fade(now)
	b.tokens += n
	b.squares += n * n
	b.calls++
}

func (b *Blame) fade(now int64) {
	keep := math.Exp(-float64(max(now-b.last, 0)) / float64(blameFolding))
	b.tokens, b.squares, b.last = b.tokens*keep, b.squares*keep*keep, now
}

// A Verdict says whose business refusals are.
type Verdict int

const (
	// Everybody: no tag makes more than half of the refused calls, so that it is the pool that uses too much.
	Everybody Verdict = iota
	// Undecided: nearly all of the refused calls are of one tag, and they are too few to tell.
	Undecided
	// Culprit: one tag makes more than half of the refused calls. It is limited alone.
	Culprit
)

// Judge tells what a refused call that was just added to b, of one tag, and to all says. More than half is meant by what is
// behind it: where as many calls of two tags are refused, one of them is always a bit ahead. So the lead must be
// far more than what chance makes of it.
func (b *Blame) Judge(now int64, all *Blame) Verdict {
	lead := 2*b.tokens - all.tokens
	switch alone := b.tokens >= sole*all.tokens; {
	case lead > 0 && lead*lead > chance*chance*all.squares:
		return Culprit
	case alone && b.calls >= soleCalls && now-all.since >= int64(soleFor):
		return Culprit
	case alone:
		return Undecided
	}
	return Everybody
}
