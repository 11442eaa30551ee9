package httpthrottle

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/redact"
)

// A Feedback receives what a service says about its limits, so that it can slow others down. Its methods are called from any number of
// goroutines at once, once for each attempt. Each call waits for them, so they should pass the report on and return. ctx is the context of
// the request.
type Feedback interface {
	// Refused is called for each refusal, of any class.
	Refused(ctx context.Context, r Refusal)
	// Accepted is called for each call that was served.
	Accepted(ctx context.Context, a Acceptance)
}

// A Pauser is a Feedback that holds back calls itself, instead of through the limiter. The
// transport asks it before each attempt draws, and again when it has drawn.
type Pauser interface {
	Feedback
	// Paused returns how much longer calls with a tag have to wait; 0 for not at all. It is called from any number of goroutines at once.
	Paused(tag string) time.Duration
}

// Pause is the default Feedback of a transport: a refusal that says when to come back holds back all calls with the same tag until then. Of
// two such times the later counts. A 429 without a time holds them back for half a second, and for twice as long after each further one, up
// to 30 s or Refusal.MaxBackoff, until a call is served. Refusals of calls that were sent before the last one do not count again. Stop holds
// back nothing: the same answer comes sooner or later. An overload without a time holds back nothing either: it may be the trouble of one
// server of many.
//
// No refusal holds calls back for longer than Max, so that a wrong or misread one cannot stop a process. For its own call its time counts
// in full.
//
// The calls that it holds back show at the limiter of the transport; see the package documentation.
//
// The zero Pause is ready to use, and one Pause may serve any number of transports to
// the same service. All methods may be called from any number of goroutines at once.
type Pause struct {
	// ToldOnly leaves out refusals that do not say for how long, or say two seconds or less. An adaptive limit (throttle.Limit.Adaptive)
	// handles these, and would lose more by stopping than by being a little slower. The refused call itself waits as long all the same. Set
	// it before the first use.
	ToldOnly bool
	// Max is how long a refusal holds calls back at most; 0 is DefaultMaxPause. Set it before the first use.
	Max time.Duration

	mu   sync.Mutex
	tags map[string]*pausing // those that were refused lately
	most int                 // at so many tags, forget looks for some to remove
}

// A pausing is the state of one tag.
type pausing struct {
	until time.Time
	cut   time.Time // when the last refusal came that did not say how long
	row   int       // how many of them came without a call that was served
}

var _ Pauser = (*Pause)(nil)

// DefaultMaxPause is how long one refusal holds back other calls at most, unless WithMaxPause or Pause.Max says otherwise.
const DefaultMaxPause = 5 * time.Minute

const (
	// brief is the delay of services with a limit of a second or so, rounded up: no reason to stop for callers that become slower anyway.
	brief = 2 * time.Second
	// forgetAfter is how long a pause is over before it is forgotten.
	forgetAfter = time.Minute
	// fewTags are kept without a check.
	fewTags = 16
)

// Refused implements Feedback.
func (p *Pause) Refused(_ context.Context, r Refusal) {
	reported := r.RetryAfter > 0
	if r.Class == Stop || !reported && r.Class != Wait || p.ToldOnly && r.RetryAfter <= brief {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	tag := p.tags[r.Tag]
	if tag == nil {
		p.forget(r.At)
		tag = &pausing{}
		if p.tags == nil {
			p.tags = map[string]*pausing{}
		}
		p.tags[r.Tag] = tag
	}
	most := p.Max
	if most <= 0 {
		most = DefaultMaxPause
	}
	delay := min(r.RetryAfter, most)
	if !reported {
		if r.Sent.Before(tag.cut) {
			return
		}
		delay = backoff(tag.row, min(r.MaxBackoff, most))
		tag.cut = r.At
		tag.row++
	}
	if until := r.At.Add(delay); until.After(tag.until) {
		tag.until = until
	}
}

// Accepted implements Feedback.
func (p *Pause) Accepted(_ context.Context, a Acceptance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if tag := p.tags[a.Tag]; tag != nil && !a.Sent.Before(tag.cut) {
		tag.row = 0
	}
}

// Paused implements Pauser.
func (p *Pause) Paused(tag string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.tags[tag]
	if state == nil {
		return 0
	}
	return max(time.Until(state.until), 0)
}

// warn logs the words of a service that asks for a longer pause than is believed.
func (t *transport) warn(a Answer, r Refusal, secrets *redact.Redactor) {
	if r.RetryAfter <= t.maxPause || r.Class == Stop {
		return
	}
	last, now := t.warned.Load(), a.At.UnixNano()
	if now-last < int64(time.Second) && now >= last || !t.warned.CompareAndSwap(last, now) {
		return
	}
	h, reported := a.hint(nil)
	said := shown(secrets.Text(h.raw))
	if !reported || h.delay != r.RetryAfter {
		said = "what the classifier made of the answer"
	}
	t.log.Warn("the service asks for a longer pause than is allowed (WithMaxPause): the other calls wait for as long as is allowed",
		"said", said, "asked", r.RetryAfter, "allowed", t.maxPause, "status", r.Status, "tag", r.Tag)
}

// forget removes the tags whose pause has been over for long, as often as their number
// has doubled. p.mu is held.
func (p *Pause) forget(now time.Time) {
	if len(p.tags) < p.most {
		return
	}
	defer func() { p.most = max(fewTags, 2*len(p.tags)) }()
	for name, tag := range p.tags {
		if now.Sub(tag.until) > forgetAfter {
			delete(p.tags, name)
		}
	}
}

const (
	firstBackoff = 500 * time.Millisecond
	lastBackoff  = 30 * time.Second
)

// backoff returns how long to wait, before jitter, where the service does not say, after n such waits: half a second, doubled each time, at
// most 30 s, or most if that is more.
func backoff(n int, most time.Duration) time.Duration {
	return min(firstBackoff<<min(n, 16), max(most, lastBackoff))
}

// late returns d plus up to more, so that callers with the same delay do not come back at the same instant. Never less: that would be
// another refusal. Where little time is left it adds less; fits is false if d itself is not within it.
func late(d, more, left time.Duration) (wait time.Duration, fits bool) {
	if d >= left {
		return 0, false
	}
	more = min(more, (left-d)/2)
	return d + time.Duration(rand.Int64N(int64(more)+1)), true
}

// spread returns how much later than d the callers may come back that were to wait for d: a tenth, at most a second.
func spread(d time.Duration) time.Duration { return min(d/10, time.Second) }
