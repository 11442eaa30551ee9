package envoyrls

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	// maxShapes and maxDrawn bound what is remembered. Of more, some are forgotten.
	maxShapes = 1024
	maxDrawn  = 10_000
	// probedFor is for how long it is remembered that a route asks with zero hits.
	probedFor = time.Hour
	// drawnFor is for how long at least it is remembered what was drawn, and twice that at most.
	drawnFor = time.Hour
)

// A shape is a hash of what the requests of a route have in common; see shapeOf.
type shape [sha256.Size]byte

// A probed remembers which routes ask with zero hits: what they say at the request level afterwards is a cost. The zero value
// is ready for use, by any number of goroutines.
type probed struct {
	mu sync.Mutex
	at map[shape]time.Time
}

func (p *probed) note(of shape, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	makeRoom(&p.at, of, maxShapes)
	p.at[of] = now
}

func (p *probed) lately(of shape, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.at[of]
	return ok && now.Sub(at) < probedFor
}

// A drawn remembers how many tokens were drawn and charged for tags, and for all, and not given back: no more can be given
// back. The zero value is ready for use, by any number of goroutines.
type drawn struct {
	mu     sync.Mutex
	lately account
	before account // what lately was, until it is too old
	since  time.Time
}

// An account is how many tokens were drawn: for all, and by tag.
type account struct {
	all  int
	tags map[string]int
}

// turn forgets what is too old.
func (d *drawn) turn(now time.Time) {
	switch age := now.Sub(d.since); {
	case age < drawnFor:
		return
	case age < 2*drawnFor:
		d.before = d.lately
	default:
		d.before = account{}
	}
	d.lately, d.since = account{}, now
}

func (d *drawn) add(tags []string, n int, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	d.lately.all += n
	for _, tag := range tags {
		tag = tagname.Short(tag)
		makeRoom(&d.lately.tags, tag, maxDrawn)
		d.lately.tags[tag] += n
	}
}

// take takes at most n tokens off what was drawn for all of the tags, and returns how many.
func (d *drawn) take(tags []string, n int, now time.Time) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	n = min(n, d.lately.all+d.before.all)
	names := make([]string, len(tags))
	for i, tag := range tags {
		names[i] = tagname.Short(tag)
		n = min(n, d.lately.tags[names[i]]+d.before.tags[names[i]])
	}
	old := min(n, d.before.all)
	d.before.all -= old
	d.lately.all -= n - old
	for _, tag := range names {
		if old := min(n, d.before.tags[tag]); old > 0 {
			d.before.tags[tag] -= old
			d.lately.tags[tag] -= n - old
		} else if n > 0 {
			d.lately.tags[tag] -= n
		}
	}
	return n
}

// makeRoom makes a map that a key can be put into: one of the others makes way where there are most.
func makeRoom[K comparable, V any](m *map[K]V, key K, most int) {
	if *m == nil {
		*m = map[K]V{}
	}
	if _, known := (*m)[key]; known || len(*m) < most {
		return
	}
	for other := range *m {
		delete(*m, other)
		return
	}
}

// refund gives back what a request says that it has drawn in vain, and no more than was drawn here.
func (s *service) refund(c *call) {
	l := throttle.ForTags(s.limiter, c.backTags...)
	if throttle.Unlimited(l) {
		return
	}
	if n := s.drawn.take(c.backTags, c.back, time.Now()); n > 0 {
		throttle.Repay(l, n)
	}
}
