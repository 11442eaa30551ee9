package sourcer

import (
	"context"
	"math"
	"sync"
	"time"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Wrap returns a source whose Read draws a token from l for each message, and reads no more messages than it got tokens. Without a limit
// ([throttle.Unlimited], which a nil l is) it returns next itself. It panics with the error of Check when the options make no sense, and if l
// counts calls in flight (a [throttle.InFlight], also in an All): a read is not a call that ends later.
//
// Read never blocks beyond the request's TimeOut, as far as next does not. Ack, Nack, ActivePartitions and TotalPartitions are those of
// next. Pending is next's too, but clamped while the source is throttled. All of them may be called from any number of goroutines at once,
// if those of next may.
//
// Every message that next sends is passed on. Messages above the requested Count, and costs above the average, are debt that later Reads
// wait for. When next panics, the messages that it had sent are passed on, and the panic goes on unchanged; tokens of unread messages are
// given back.
func Wrap(next sourcesdk.Sourcer, l throttle.Limiter, opts ...Option) sourcesdk.Sourcer {
	s := newSettings(opts)
	admission.Must(s.check())
	if throttle.Unlimited(l) {
		return next
	}
	admission.MustCountTokens("sourcer", l)
	w := &source{Sourcer: next, settings: s, limiter: l, want: math.MaxInt32, each: 1, look: outlooks(l)}
	if s.cost != nil {
		w.want = 1 // costs are not known yet
	}
	w.largest = largestCost(l)
	w.status, _ = l.(interface{ Status() throttle.Status })
	w.keep.drewAt = time.Now()
	return w
}

// A source is what Wrap returns.
type source struct {
	sourcesdk.Sourcer
	settings

	limiter throttle.Limiter
	status  interface{ Status() throttle.Status } // the limiter's; nil when it has none
	look    func() outlook                        // nil: the limiter does not tell, and nothing is kept

	largest int // what a message may cost

	closedOnce sync.Once // the log entry about a closed limiter
	overOnce   sync.Once // and about messages that cost more than largest

	mu      sync.Mutex // guards the following fields: lessons from the Reads so far
	want    int        // messages that the source is good for in one Read
	each    float64    // tokens that a message costs on average, at least 1
	shortAt time.Time  // when a Read had more to read than tokens, last
	cadence cadence
	keep    keeper // tokens for the next Read
}

// Read implements sourcesdk.Sourcer; see Wrap.
func (s *source) Read(ctx context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	if r.Count() == 0 {
		s.Sourcer.Read(ctx, r, out)
		return
	}
	t := turn{began: time.Now(), timeout: r.TimeOut()}
	count := int(min(r.Count(), math.MaxInt32))
	kept := s.begin()
	o := s.order(count)
	g, waited, err := s.draw(ctx, t, o, kept)
	switch {
	case ctx.Err() != nil:
		s.end(ctx, g, count, brought{})
	case err != nil:
		s.waitOut(ctx, t, err)
		s.end(ctx, g, count, brought{})
	default:
		s.drew(o.tokens)
		s.readUpTo(ctx, t, o, g, reading{out: out, count: count, waited: waited})
	}
}

// A reading is one Read as the platform asked for it.
type reading struct {
	out    chan<- sourcesdk.Message
	count  int  // messages that it asked for
	waited bool // tokens were waited for
}

// readUpTo has next read as many messages as the tokens of g pay for.
func (s *source) readUpTo(ctx context.Context, t turn, o order, g purse, r reading) {
	granted := g.n()
	count := o.messages(granted)
	asked := time.Now()
	p := newPipe(ctx, r.out, s.cost, s.largest, count)
	defer func() {
		p.shut()
		if p.over > 0 {
			s.overOnce.Do(func() {
				s.logger().Error("a message costs more than can ever be granted: such messages count as the largest cost that can", "largest", s.largest)
			})
		}
		left := g.spend(p.used)
		all, short := s.learn(t, p, lesson{asked: count, of: r.count, short: granted < o.tokens || r.waited})
		// A Read that had to wait for its messages would not have had more of them earlier.
		took := time.Since(asked)
		s.end(ctx, left, r.count, brought{all: all && took <= t.timeout/2, lacked: short && took <= t.timeout/20})
		if p.panicked != nil {
			panic(p.panicked) //nolint:forbidigo // the cost function panicked; it goes on where numaflow-go recovers it
		}
	}()
	s.Sourcer.Read(ctx, &request{count: uint64(count), timeout: t.rest()}, p.in)
	p.flush()
}

// A lesson is the request that a Read was given.
type lesson struct {
	asked int  // messages, of next
	of    int  // messages, by the platform
	short bool // tokens came too late for the platform, or were too few
}

// learn draws the conclusions from a Read. It reports whether the Read brought all that was asked for, and whether tokens held it back.
func (s *source) learn(t turn, p *pipe, l lesson) (all, short bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cadence.handed(time.Now(), p.sent, l.of, t.timeout)
	if p.sent > 0 && s.cost != nil {
		s.each = max(1, (s.each+float64(p.used)/float64(p.sent))/2)
	}
	if p.sent < l.asked {
		s.want = p.sent + p.sent/4 + 1
		return false, false
	}
	s.want = min(max(s.want, 4*l.asked), math.MaxInt32)
	if l.short {
		s.shortAt = time.Now()
	}
	return true, l.short
}

// request is the ReadRequest that next gets.
type request struct {
	count   uint64
	timeout time.Duration
}

func (r *request) Count() uint64 { return r.count }

func (r *request) TimeOut() time.Duration { return r.timeout }
