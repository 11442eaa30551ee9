package httpproxy

import "time"

// leastRate is how many bytes of a body have to come in a second.
const leastRate = 1 << 10

// A pace says how much longer a client may be waited for. It is idleTimeout at first, and never more; what the client takes counts
// against it, and each byte pays a part of a second back. So one who sends a byte now and then does not keep a place.
type pace struct{ most, left time.Duration }

func newPace(idle time.Duration) pace { return pace{idle, idle} }

// took counts a wait for the client, in which some bytes came.
func (p *pace) took(wait time.Duration, bytes int) {
	p.left = min(max(p.left-wait, 0)+time.Duration(bytes)*time.Second/leastRate, p.most)
}
