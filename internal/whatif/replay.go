package whatif

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/virtual"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Options say how to replay.
type Options struct {
	// Pods is how many pods share the limit: 1 to MaxPods. The calls of a tag come to one after the other.
	Pods int
	// MaxWait is the longest time that a call may wait; 0: any time.
	MaxWait time.Duration
	// Random says that calls come at random moments, independently of each other. Otherwise those of a tag come at equal distances.
	Random bool
	// Seed determines the random moments.
	Seed uint64
	// MaxDraws is about how many draws are made at most: of more calls, several of a busy tag draw together. 0: DefaultDraws.
	MaxDraws int64
}

const (
	// MaxPods is the most pods of a replay.
	MaxPods = 100
	// DefaultDraws is the default of Options.MaxDraws. A replay then takes some seconds.
	DefaultDraws = 3_000_000
	// warmUp is how long the pods run before the recording begins. They have their shares then.
	warmUp = 10 * time.Second
	// drain is how long calls may still wait after its end.
	drain = time.Hour
	// maxStanding is about how many callers stand in the limiters at once: those behind them wait in line for a place there.
	maxStanding = 400
)

// Replay runs the recording against a valid configuration, until all calls have ended or an hour after its end. Errors: those of
// throttle.New, options out of bounds, and the cause of ctx if it ends before.
func Replay(ctx context.Context, t *Traffic, conf *opening.Config, o Options) (*Result, error) {
	if o.Pods < 1 || o.Pods > MaxPods {
		return nil, fmt.Errorf("pods is %d, allowed: 1 to %d", o.Pods, MaxPods)
	}
	if o.MaxDraws <= 0 {
		o.MaxDraws = DefaultDraws
	}
	w := virtual.NewWorld(t.Start.Add(-warmUp), o.Seed)
	p, err := newPool(w, conf, o.Pods)
	if err != nil {
		return nil, err
	}
	r := &replay{t: t, o: o, w: w, pool: p, ledger: newLedger(t, conf)}
	r.res.Waited, r.res.PerSecond, r.res.Merged = true, conf.Limit.Rate(), 1
	if conf.Limit.Max > 0 {
		r.res.Limit = p.pods[0].th.Limit().String()
	}
	r.begin()
	end := warmUp + t.Length()
	for at := warmUp; at < end+drain && (at < end || w.Waiting() > 0); at += time.Minute {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		w.Run(at + time.Minute)
	}
	r.over = true
	p.end()
	w.Run(w.Since())
	return r.result(), nil
}

// A replay is one run.
type replay struct {
	*ledger

	t        *Traffic
	o        Options
	w        *virtual.World
	pool     *pool
	most     int // callers of a stream at once
	grain    grain
	streams  []*stream
	shortest time.Duration // the wait of the tag that waits least
	over     bool
}

// begin plans the first call of each tag.
func (r *replay) begin() {
	conf := r.pool.conf
	burst := r.pool.pods[0].th.Limit().Burst / r.o.Pods // what a pod can save up
	r.grain = newGrain(r.t, conf, r.o.MaxDraws, burst)
	r.most = max(8, maxStanding/(len(r.t.Tags)*r.o.Pods))
	for i := range r.t.Tags {
		s := &stream{replay: r, tag: i, minutes: r.t.Tags[i].Minutes, largest: largestDraw(conf, burst, r.t.Tags[i].Name)}
		for _, pod := range r.pool.pods {
			s.ways = append(s.ways, &way{stream: s, limiter: pod.th.ForTag(r.t.Tags[i].Name)})
		}
		s.next = i // so that single calls of many tags do not all come to the first pod
		_, phase := math.Modf(float64(i+1) * math.Phi)
		s.ahead = s.distance(phase)
		s.plan()
		r.streams = append(r.streams, s)
	}
	r.look()
}

// look finds the shortest wait of the tags that have calls at present, each second.
func (r *replay) look() {
	shortest, some := time.Duration(math.MaxInt64), false
	for _, s := range r.streams {
		if len(s.minutes) > 0 && time.Duration(s.minutes[0].Index)*time.Minute <= r.w.Since()-warmUp {
			shortest, some = min(shortest, s.lately), true
		}
	}
	if r.shortest = 0; some {
		r.shortest = shortest
	}
	if r.w.Since() < warmUp+r.t.Length() {
		r.w.At(r.w.Since()+time.Second, r.look)
	}
}

// A stream is the calls of one tag.
type stream struct {
	*replay

	tag      int
	minutes  []Minute // from the present one on
	at       time.Duration
	ahead    float64       // draws until the next one
	largest  float64       // tokens that calls draw together
	lately   time.Duration // how long its calls waited lately
	ways     []*way        // by pod
	together int           // the calls of the next draw
	next     int           // the pod of the next call
	rest     float64       // of tokens that the calls so far did not draw, below one
	fire     func()
}

// distance returns how many draws of its present rate pass before the next one. chance is from 0 up to 1.
func (s *stream) distance(chance float64) float64 {
	if s.o.Random {
		return -math.Log(1 - s.w.Float64())
	}
	return chance
}

// calls returns for how many calls a draw stands in a minute.
func (s *stream) calls(m *Minute) int {
	wait := s.lately
	for _, y := range s.ways {
		if len(y.behind) > 0 {
			wait = max(wait, s.w.Since()-y.behind[0].came)
		}
	}
	return max(1, min(s.grain.calls(m, wait, s.shortest), int(min(s.largest/m.Cost, maxRate))))
}

// plan plans the next draw of the stream.
func (s *stream) plan() {
	if s.fire == nil {
		s.fire = s.come
	}
	for ; len(s.minutes) > 0; s.minutes = s.minutes[1:] {
		m := &s.minutes[0]
		begin := time.Duration(m.Index) * time.Minute
		s.at = max(s.at, begin)
		s.together = s.calls(m)
		rate := m.Rate / float64(s.together)
		rest := (begin + time.Minute - s.at).Seconds()
		if takes := s.ahead / rate; takes < rest {
			s.at += time.Duration(takes * float64(time.Second))
			s.w.At(warmUp+s.at, s.fire)
			return
		}
		s.ahead -= rest * rate
	}
}

// come lets a call come.
func (s *stream) come() {
	m := &s.minutes[0]
	n := s.together
	tokens := float64(n)*m.Cost + s.rest
	c := call{came: s.w.Since(), calls: n, tokens: int(tokens)}
	s.rest = tokens - float64(c.tokens)
	if s.over {
		return
	}
	s.res.Draws++
	s.res.Merged = max(s.res.Merged, n)
	s.ahead = s.distance(1)
	s.plan()
	s.next++
	s.ways[s.next%len(s.ways)].take(c)
}

// A call is one draw.
type call struct {
	came   time.Duration
	calls  int
	tokens int
}

// A way is the way of a stream's calls to the limiter of one pod.
type way struct {
	*stream

	limiter  throttle.Limiter
	standing int    // callers at the limiter
	behind   []call // those that have no place there
}

// take lets a call draw, and after it those that wait for its place.
func (y *way) take(c call) {
	if y.standing == y.most {
		y.behind = append(y.behind, c)
		return
	}
	y.standing++
	y.draw(c)
	for len(y.behind) > 0 {
		c, y.behind = y.behind[0], y.behind[1:]
		y.draw(c)
	}
	y.standing--
}

// draw lets a call draw.
func (y *way) draw(c call) {
	ctx := context.Background()
	if y.over {
		y.unended(y.tag, c.calls)
		return
	}
	if y.o.MaxWait > 0 {
		ctx = y.w.WithDeadline(c.came + y.o.MaxWait)
	}
	p, err := y.limiter.Acquire(ctx, c.tokens)
	if err == nil {
		y.lately = y.w.Since() - c.came
		y.granted(y.tag, c.calls, float64(p.N()), c.came-warmUp, y.w.Since()-warmUp)
		return
	}
	y.lately = y.o.MaxWait
	e, known := errors.AsType[*throttle.Error](err)
	switch {
	case y.over:
		y.unended(y.tag, c.calls)
	case known:
		y.refused(y.tag, c.calls, e.Reason, c.came-warmUp)
	default: // its deadline has passed in line
		y.refused(y.tag, c.calls, limit.ReasonLimit, c.came-warmUp)
	}
}
