package protocol

import (
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A history holds the last answered requests of one incarnation. A store that has
// gone back further is assumed to have been written to by a clone. At one sync a
// second it covers 17 minutes. With default settings, a Redis server under load loses
// less with its snapshots (5 minutes), a JetStream server with its sync interval
// (2 minutes).
type history struct {
	tickets [1024]driver.Ticket // a ring, filled from the start
	next    int
}

func (h *history) add(t driver.Ticket) {
	h.tickets[h.next] = t
	h.next = (h.next + 1) % len(h.tickets)
}

// holds reports whether t was answered.
func (h *history) holds(t driver.Ticket) bool {
	for i := range h.tickets {
		if h.tickets[i] == t && t.Seq > 0 {
			return true
		}
	}
	return false
}
