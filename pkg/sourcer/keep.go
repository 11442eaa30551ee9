package sourcer

import (
	"context"
	"math"
	"time"
)

const (
	// keepFor is for how long after a Read tokens are drawn for the next.
	keepFor = time.Minute
	// fullFor is how long all Reads of a source must have got all that they asked for to show that it never runs dry. Such a source does
	// not wait for messages, but takes long to fetch them.
	fullFor = 5 * time.Second
	// The bounds of the time between two polls of the bucket, while tokens are kept.
	leastLook, mostLook = time.Millisecond, 250 * time.Millisecond
)

// A keeper holds the tokens that are drawn for the next Read while the platform is busy with the last batch. For a source that never runs
// dry, it also draws while the source fetches its messages. It keeps the bucket from overflowing. While no Read draws and the batch of
// tokens is incomplete, a timer polls the bucket whenever it is about half full and draws the tokens at hand. Nothing waits or runs between
// two polls, so nothing is left over when the source is not read any more. The source's mutex guards it.
type keeper struct {
	purse  purse
	seen   outlook   // when the newest token in purse was drawn, or later
	drewAt time.Time // when a Read had drawn last, or this keeper was made

	reading int       // Reads in progress
	turn    int       // counts their beginnings and ends: a look that began before does not count
	full    time.Time // since when each Read had all that it was asked for; the zero Time: the last had not
	target  int       // tokens that are kept at most
	since   time.Time // since when each Read had more messages than tokens; the zero Time: the last had not
	pace    pace      // of the draws; the zero pace while it lacks
	endedAt time.Time
	timer   *time.Timer
}

// A pace spreads the draws of a source that has fewer messages than tokens over the platform's absence. A pool would take a source that
// drew nothing for a while for idle. If it then drew much at once, it would count as short of tokens.
type pace struct {
	from int // tokens that were there at the beginning
	over time.Duration
}

// paceFor is the shortest time for which pacing pays.
const paceFor = 100 * time.Millisecond

// most is how many of target tokens may be there after a time.
func (p pace) most(target int, after time.Duration) int {
	if p.over < paceFor || after >= p.over {
		return target
	}
	return p.from + int(math.Ceil(float64(target-p.from)*float64(after)/float64(p.over)))
}

// next is how long it takes until there may be one more.
func (p pace) next(target int) time.Duration {
	if p.over < paceFor {
		return 0
	}
	return max(p.over/time.Duration(max(target-p.from, 1)), paceFor/4)
}

// begin ends the keeping for a Read that begins, and returns the tokens kept for it.
func (s *source) begin() purse {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.keep
	now := time.Now()
	if k.reading == 0 {
		s.cadence.began(now)
	}
	k.reading++
	k.halt()
	kept := k.purse
	k.purse = nil
	if s.look == nil || len(kept) == 0 {
		return kept
	}
	// No more than the bucket held after the last Read, plus the present share's earnings since. A share or a limit that has fallen takes
	// its earlier earnings with it.
	seen := s.look()
	most := min(float64(maxTokens), seen.room+seen.rate*now.Sub(k.drewAt).Seconds()+1)
	if k.seen.void(seen, now) || !seen.keeps {
		most = 0
	}
	return kept.trim(int(most))
}

// flows reports whether the source never runs dry.
func (k *keeper) flows(now time.Time) bool {
	return !k.full.IsZero() && now.Sub(k.full) >= fullFor
}

// halt ends the polls.
func (k *keeper) halt() {
	k.turn++
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

// drew notes that a Read has all the tokens that it gets. The source's fetch may now take a while, too.
func (s *source) drew(tokens int) {
	var seen outlook
	if s.look != nil {
		seen = s.look()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.keep
	k.drewAt = time.Now()
	if k.flows(k.drewAt) && k.reading == 1 && seen.keeps && seen.open {
		k.target, k.pace, k.endedAt, k.seen = tokens, pace{}, k.drewAt, seen
		s.lookIn(seen.next(tokens))
	}
}

// brought is the outcome of a Read.
type brought struct {
	all    bool // that it was asked for, in half of the time
	lacked bool // tokens held it back
}

// end takes back the tokens that a Read did not use, and begins the keeping for the next. A Read whose stream is over is the last for a
// while.
func (s *source) end(ctx context.Context, left purse, count int, got brought) {
	var seen outlook
	if s.look != nil {
		seen = s.look()
	}
	keeps := ctx.Err() == nil && seen.keeps && seen.open
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.keep
	k.reading--
	k.halt()
	k.target, k.endedAt = s.tokensFor(min(s.want, count)), time.Now()
	switch {
	case !got.all:
		k.full = time.Time{}
	case k.full.IsZero():
		k.full = k.endedAt
	}
	if !keeps {
		left.trim(0)
		return
	}
	k.purse = append(k.purse, left...).trim(k.target)
	if !got.lacked && !k.flows(k.endedAt) {
		k.purse = k.purse.trim(1) // the others count as used or come back, so that the pool sees a little more than the real use
	}
	k.seen = seen
	switch {
	case !got.lacked:
		k.since = time.Time{}
	case k.since.IsZero():
		k.since = k.endedAt
	}
	k.pace = pace{}
	if !got.lacked {
		k.pace = pace{from: k.purse.n(), over: s.cadence.away() * 9 / 10}
	}
	if lack := k.target - k.purse.n(); lack > 0 && k.reading == 0 {
		s.lookIn(max(seen.next(lack), k.pace.next(k.target)))
	}
}

// next returns how long it takes until some of the missing tokens are worth drawing: the bucket must be drawn from before it is full.
func (o outlook) next(lack int) time.Duration {
	if o.rate <= 0 {
		return mostLook
	}
	goal := min(float64(lack), max(1, o.room/2))
	return min(max(time.Duration((goal-o.tokens)/o.rate*float64(time.Second)), leastLook), mostLook)
}

// lookIn sets the timer. s.mu is held.
func (s *source) lookIn(d time.Duration) {
	turn := s.keep.turn
	s.keep.timer = time.AfterFunc(d, func() { s.collect(turn) })
}

// collect draws the tokens at hand for the next Read, and polls again later if they are not enough.
func (s *source) collect(turn int) {
	seen, now := s.look(), time.Now()
	lack, paced, ok := s.lack(turn, seen, now)
	if !ok {
		return
	}
	var got purse
	if n := s.ask(seen, min(lack, paced)); n > 0 {
		got = s.atHand(context.Background(), n)
		seen.tokens -= float64(got.n())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := &s.keep; k.turn != turn {
		got.trim(0)
		return
	}
	s.keep.purse = append(s.keep.purse, got...)
	if lack -= got.n(); lack > 0 {
		s.lookIn(max(seen.next(lack), s.keep.pace.next(s.keep.target)))
	}
}

// lack returns how many tokens are missing, and how many of them may be drawn now; ok is false when the keeping is over.
func (s *source) lack(turn int, seen outlook, now time.Time) (n, paced int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.keep
	if k.turn != turn || seen.closed || now.Sub(k.endedAt) > keepFor {
		return 0, 0, false
	}
	if k.seen.void(seen, now) || !seen.keeps {
		k.purse = k.purse.trim(0)
	}
	k.seen = seen
	n = k.target - k.purse.n()
	return n, k.pace.most(k.target, now.Sub(k.endedAt)) - k.purse.n(), n > 0
}
