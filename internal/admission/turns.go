package admission

import "time"

// turns is the line of the messages that were nacked and have not come again: each has its turn when those before it have
// had theirs. Nobody knows which message comes again, and when; so it is a line of times, and whoever comes at one of
// them may use it. The zero turns is empty. It has no clock, and no lock.
type turns struct {
	last time.Time // when the last one has its turn
}

// mostSpread bounds how long a line may become, beyond what the limiter says by itself: whoever comes later has its turn
// there, too. A share that grows, or a line that a restarted process has forgotten, makes the times wrong; this says for
// how long. It is a line of 6,000 messages at 20 per second.
const mostSpread = 5 * time.Minute

// take gives a message the next turn, and returns how long after now the message should come again.
//
// after is when the limiter would let it through if nobody had been nacked before; it never comes earlier. each is how
// long its tokens take to accrue. lead is by how much it may come ahead of its turn, and wait for it: the tokens of one
// that is late would be lost.
func (t *turns) take(now time.Time, after, each, lead time.Duration) time.Duration {
	turn := now.Add(after)
	if t.last.After(turn.Add(-each)) {
		turn = t.last.Add(each)
	}
	if most := now.Add(after + mostSpread); turn.After(most) {
		turn = most
	}
	t.last = turn
	return max(after, turn.Sub(now)-lead)
}
