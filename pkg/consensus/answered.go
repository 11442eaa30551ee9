package consensus

import "github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"

// A history is the requests of one incarnation that were answered last. A store
// that has gone back further than it reaches is taken for one that a clone has
// written to. It holds 17 minutes at one sync a second: more than a Redis server
// loses with the snapshots of its default configuration under load (5 minutes), or a
// JetStream server with its default sync interval (2 minutes).
type history struct {
	tickets [1024]driver.Ticket // a ring, filled from the start
	next    int
}

func (h *history) add(t driver.Ticket) {
	h.tickets[h.next] = t
	h.next = (h.next + 1) % len(h.tickets)
}

// holds tells whether t was answered.
func (h *history) holds(t driver.Ticket) bool {
	for i := range h.tickets {
		if h.tickets[i] == t && t.Seq > 0 {
			return true
		}
	}
	return false
}
