package fairtags

import (
	"math"
	"time"
)

const (
	// blameFolding is the time in which a Blame loses all but 1/e.
	blameFolding = 5 * time.Second
	// After blameMemory without a refusal, the next one is the first.
	blameMemory = 30 * time.Second
	// sole is the part of the refused calls that counts as all. A tag that made that part for soleFor is the culprit, if they are soleCalls
	// or more.
	sole      = 0.95
	soleFor   = time.Second
	soleCalls = 6
	// chance is how many times larger a lead must be than chance would make it.
	chance = 3
)

// A Blame is the tokens of recently refused calls, of one tag or of all together. The zero Blame is none. Times are in nanoseconds of one
// clock.
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

// A Verdict names the cause of refusals.
type Verdict int

const (
	// Everybody: no tag makes more than half of the refused calls, so the pool uses too much.
	Everybody Verdict = iota
	// Undecided: nearly all of the refused calls are of one tag, but there are too few to tell.
	Undecided
	// Culprit: one tag makes more than half of the refused calls. It is limited alone.
	Culprit
)

// Judge returns the verdict on a refused call that was just added to b, of one tag, and to all. A culprit must cause more than half: if two
// tags have as many refused calls, one of them is always a bit ahead. So the lead must be far more than chance.
func (b *Blame) Judge(now int64, all *Blame) Verdict {
	lead := 2*b.tokens - all.tokens
	switch alone := b.tokens >= sole*all.tokens; {
	case lead > chance*math.Sqrt(all.squares):
		return Culprit
	case alone && b.calls >= soleCalls && now-all.since >= int64(soleFor):
		return Culprit
	case alone:
		return Undecided
	}
	return Everybody
}
