package envoy

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	// maxShapes and maxDrawn bound the remembered entries. Beyond that, some are dropped.
	maxShapes = 1024
	maxDrawn  = 10_000
	// probedFor is how long the service remembers that a route asks with zero hits.
	probedFor = time.Hour
	// drawnFor is the minimum time that draws are remembered; the maximum is twice that.
	drawnFor = time.Hour
)

// A shape is a hash of the common part of a route's requests; see shapeOf.
type shape [sha256.Size]byte

// A probed remembers the routes that ask with zero hits: their later hits at the request level are costs. The zero value is ready for use,
// and it is safe for concurrent use.
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

// A drawn remembers how many tokens were drawn and charged, by tag and in total, and not given back: no more can be given back. The zero
// value is ready for use, and it is safe for concurrent use.
type drawn struct {
	mu     sync.Mutex
	lately account
	before account // the previous lately, until it is too old
	since  time.Time
}

// An account counts drawn tokens: in total, and by tag.
type account struct {
	all  int
	tags map[string]int
}

// turn drops old entries.
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
	for _, tag := range shortNames(tags) {
		makeRoom(&d.lately.tags, tag, maxDrawn)
		d.lately.tags[tag] += n
	}
}

// shortNames returns the names under which tags are kept, each once: a long tag's is the same as that of the text of its hash.
func shortNames(tags []string) []string {
	names := make([]string, len(tags))
	for i, tag := range tags {
		names[i] = tagname.Short(tag)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// take subtracts at most n tokens from the draws of all the tags, and returns how many.
func (d *drawn) take(tags []string, n int, now time.Time) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	n = min(n, d.lately.all+d.before.all)
	names := shortNames(tags)
	for _, tag := range names {
		n = min(n, d.lately.tags[tag]+d.before.tags[tag])
	}
	old := min(n, d.before.all)
	d.before.all -= old
	d.lately.all -= n - old
	for _, tag := range names {
		old := min(n, d.before.tags[tag])
		if old > 0 {
			d.before.tags[tag] -= old
		}
		if n > old {
			d.lately.tags[tag] -= n - old
		}
	}
	return n
}

// makeRoom makes room for key in a map of no more than most entries: if it is full, another entry is removed.
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

// refund gives back the tokens that a request reports as unused, at most those drawn here.
func (s *service) refund(c *call) {
	l := throttle.ForTags(s.limiter, c.backTags...)
	if throttle.Unlimited(l) {
		return
	}
	if n := s.drawn.take(c.backTags, c.back, time.Now()); n > 0 {
		hook.Repay(l, n)
	}
}
