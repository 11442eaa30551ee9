package gate

import "sync"

// An audience is the callers outside a limiter's queue to notify at once when it closes: draws on several limiters, which stand at the
// scarcest. All methods may be called from any goroutine.
type audience struct {
	mu     sync.Mutex
	over   bool
	listen map[*func()]struct{}
}

// tell calls ring once when the limiter is closed, at once if it is already; stop ends that.
func (a *audience) tell(ring func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		ring()
		return func() {}
	}
	if a.listen == nil {
		a.listen = map[*func()]struct{}{}
	}
	a.listen[&ring] = struct{}{}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listen, &ring)
	}
}

// dismiss notifies everybody that the limiter is closed.
func (a *audience) dismiss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for ring := range a.listen {
		(*ring)()
	}
	a.listen = nil
}

// Listeners returns how many listen for the end of the limiter.
func (g *Gate) Listeners() int {
	g.audience.mu.Lock()
	defer g.audience.mu.Unlock()
	return len(g.audience.listen)
}
