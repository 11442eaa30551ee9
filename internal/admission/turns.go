package admission

import "time"

// turns is the line of the messages that were nacked and have not come again: each has its turn after the earlier ones. Nobody knows which
// message comes again, or when. So it is a line of times, and any message may use one. The zero turns is empty. It has no clock, and no
// lock.
type turns struct {
	last time.Time // when the last one has its turn
}

// mostSpread bounds how long a line may become, beyond the limiter's own wait; all later messages have their turn there, too. A share that
// grows, or a line lost in a restart, makes the times wrong; this bounds for how long. It is a line of 6,000 messages at 20 per second.
const mostSpread = 5 * time.Minute

// take gives a message the next turn, and returns how long after now the message should come again.
//
// The message never comes before after, the limiter's wait without any nacked messages. Its tokens take each to accrue. It may come lead
// ahead of its turn, and wait for it: the tokens of a late message would be lost.
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
