package httpproxy

import "time"

// leastRate is the minimum rate of a body, in bytes per second.
const leastRate = 1 << 10

// A pace is how much longer the proxy waits for a client. It starts at idleTimeout, its maximum. The client's time counts against it, and
// each byte pays back a part of a second. So a client that sends a byte now and then does not keep a place.
type pace struct{ most, left time.Duration }

func newPace(idle time.Duration) pace { return pace{idle, idle} }

// took counts a wait for the client in which some bytes came.
func (p *pace) took(wait time.Duration, bytes int) {
	p.left = min(max(p.left-wait, 0)+time.Duration(bytes)*time.Second/leastRate, p.most)
}
