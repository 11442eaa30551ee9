package envoyrls

import (
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	// maxShapes and maxDrawn bound what is remembered. Of more, some are forgotten.
	maxShapes = 1024
	maxDrawn  = 10_000
	// probedFor is for how long it is remembered that a route asks with zero hits.
	probedFor = time.Hour
)

// A probed remembers which routes ask with zero hits: what they say at the request level afterwards is a cost. The zero value
// is ready for use, by any number of goroutines.
type probed struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (p *probed) note(shape string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	makeRoom(&p.at, shape, maxShapes)
	p.at[shape] = now
}

func (p *probed) lately(shape string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.at[shape]
	return ok && now.Sub(at) < probedFor
}

// A drawn remembers how many tokens were drawn and charged for tags, and "" for all, and not given back: no more can be given
// back. The zero value is ready for use, by any number of goroutines.
type drawn struct {
	mu     sync.Mutex
	tokens map[string]int
}

func (d *drawn) add(tags []string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, tag := range append([]string{""}, tags...) {
		makeRoom(&d.tokens, tag, maxDrawn)
		d.tokens[tag] += n
	}
}

// take takes at most n tokens off what was drawn for all of the tags, and returns how many.
func (d *drawn) take(tags []string, n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := append([]string{""}, tags...)
	for _, tag := range all {
		n = min(n, d.tokens[tag])
	}
	for _, tag := range all {
		if n > 0 {
			d.tokens[tag] -= n
		}
	}
	return n
}

// makeRoom makes a map that a key can be put into: one of the others, but "", makes way where there are most.
func makeRoom[V any](m *map[string]V, key string, most int) {
	if *m == nil {
		*m = map[string]V{}
	}
	if _, known := (*m)[key]; known || len(*m) < most {
		return
	}
	for other := range *m {
		if other != "" {
			delete(*m, other)
			return
		}
	}
}

// refund gives back what a request says that it has drawn in vain, and no more than was drawn here.
func (s *service) refund(c *call) {
	l := throttle.ForTags(s.limiter, c.backTags...)
	if throttle.Unlimited(l) {
		return
	}
	if n := s.drawn.take(c.backTags, c.back); n > 0 {
		throttle.Repay(l, n)
	}
}
