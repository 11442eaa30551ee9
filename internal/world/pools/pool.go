package pools

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Play plays the scenarios of files on a store that has the time itself, and, where a scenario asks for each, on one that learns it with the
// next write.
func Play(t *testing.T, files string) {
	t.Helper()
	scenario.Play(t, files, func(t *testing.T, kind string) scenario.World {
		s := world.NewServer()
		s.Deferred = kind == deferred
		return &pool{
			t: t, store: s, hub: memstore.New(), limit: throttle.Limit{Max: 1000}, byName: map[string]*pod{}, crews: map[string]*crew{},
			permits: map[string]throttle.Permit{}, services: map[string]*service{},
			meters: map[string]*meter{},
		}
	}, "own time", deferred)
}

const deferred = "time of the last write"

// A pool is the world of a scenario.
type pool struct {
	t        *testing.T
	store    *world.Server
	hub      driver.Pusher
	limit    throttle.Limit
	quotas   *throttle.Quotas
	pods     []*pod // in the order in which they joined
	mu       sync.Mutex
	byName   map[string]*pod // the newest of a name
	crews    map[string]*crew
	permits  map[string]throttle.Permit
	services map[string]*service
	meters   map[string]*meter // by tag
	whole    *meter            // of a pool of slots
	mint     mint
	window   window
	changed  bool                   // the limit or the store
	mark     float64                // a figure that others are compared with
	receipts throttle.PauseReceipts // of the newest pause
	earlier  throttle.PauseReceipts // and of the one before
	failOver func()                 // to the older copy
}

// A pod is a member with its limiter.
type pod struct {
	name, id string
	m        *consensus.Member
	rate     *throttle.Throttle
	slots    *throttle.InFlight
	line     *world.Line
	file     *world.File // nil: none
	gone     bool
}

// limiter returns the pod's limiter.
func (p *pod) limiter() interface {
	throttle.Limiter
	RetryAfter(until time.Time, reason string)
	Throttled() (throttle.Throttling, bool)
	Paused(tag string) (throttle.Paused, bool)
	Pause(ctx context.Context, until time.Time, reason string, opts ...throttle.PauseOption) (throttle.PauseReceipts, error)
	Resume(ctx context.Context, opts ...throttle.PauseOption) error
	Close() error
} {
	if p.slots != nil {
		return p.slots
	}
	return p.rate
}

// Do implements scenario.World.
func (p *pool) Do(name string, line *scenario.Order) string {
	synctest.Wait()
	p.sound()
	o := &order{pool: p, Order: line}
	if do, ok := actions[name]; ok {
		do(o)
		return ""
	}
	if _, ok := figures[name]; ok {
		o.Words = append([]string{name}, o.Words...)
		return rounded(o.figures()()...)
	}
	require.Contains(p.t, questions, name, o.Line)
	return questions[name](o)
}

// sound requires that no more than the whole is granted by shares that the store knows of.
func (p *pool) sound() {
	var sum driver.Share
	for _, one := range p.pods {
		if v := one.m.View(); !v.Degraded {
			sum += v.Share
		}
	}
	require.LessOrEqual(p.t, sum, driver.Whole, "the shares add up to more than the whole")
}

// End implements scenario.World.
func (p *pool) End() {
	for _, c := range p.crews {
		c.stop()
	}
	for _, one := range p.pods {
		one.line.Mend()
		_ = one.limiter().Close()
	}
	time.Sleep(2 * time.Second) // for requests under way
	p.judge()
}

// pod returns the newest pod of a name.
func (p *pool) pod(name string) *pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name]
}

// An order is a command of a pool.
type order struct {
	*pool
	*scenario.Order
}

// who returns the pods of a word.
func (o *order) who(word string) (some []*pod) {
	if but, ok := strings.CutPrefix(word, "all"); ok && (but == "" || but[0] == '-') {
		without := strings.Split(but, "-")
		for _, one := range o.pods {
			if !one.gone && !slices.Contains(without, one.name) {
				some = append(some, one)
			}
		}
		return some
	}
	for name := range strings.SplitSeq(word, ",") {
		require.Contains(o.T, o.byName, name, o.Line)
		some = append(some, o.byName[name])
	}
	return some
}

// one returns the pod that the next word names, and the tag behind it.
func (o *order) one() (*pod, string) {
	name, tag, _ := strings.Cut(o.Word(""), ":")
	return o.who(name)[0], tag
}

// each does something with the pods of the next word.
func (o *order) each(do func(one *pod)) {
	for _, one := range o.who(o.Word("")) {
		do(one)
	}
}

// tellEach joins what is told of the pods of the next word.
func (o *order) tellEach(tell func(one *pod) string) string {
	var words []string
	o.each(func(one *pod) { words = append(words, tell(one)) })
	return strings.Join(words, " ")
}

var (
	modes = map[string]any{
		"scheduled": throttle.RampScheduled{}, "relaxed": throttle.RampRelaxed{}, "onlyIfUsed": throttle.RampOnlyIfUsed{},
		"onlyIfUsed/50": throttle.RampOnlyIfUsed{ThresholdPercentage: 50}, "onlyIfUsed/60": throttle.RampOnlyIfUsed{ThresholdPercentage: 60},
		"onlyIfUsed/80": throttle.RampOnlyIfUsed{ThresholdPercentage: 80}, "goBackN": throttle.RampGoBackN{},
		"goBackN/10s": throttle.RampGoBackN{CoolDownPeriod: 10 * time.Second}, "goBackN/1h": throttle.RampGoBackN{CoolDownPeriod: time.Hour},
	}
	policies = map[string]consensus.Policy{"even": consensus.Even, "fair": consensus.Fair}
)

// limits returns the limit of the next pods with the fields that the order sets.
func (o *order) limits() throttle.Limit {
	l := o.limit
	o.Fill(&l, modes)
	return l
}

// join has a pod join the pool.
func (o *order) join(name string) {
	opts := []consensus.Option{consensus.WithLogger(quiet)}
	one := &pod{name: name, id: o.Value("id"), line: world.NewLine(o.store, o.hub)}
	if one.id == "" {
		one.id = name
	}
	opts = append(opts, consensus.WithID(one.id))
	if o.Value("onloss") == "stop" {
		opts = append(opts, consensus.WithOnStoreLoss(consensus.Stop))
	}
	if policy := o.Value("policy"); policy != "" {
		opts = append(opts, consensus.WithPolicy(policies[policy]))
	}
	if lease := o.Value("lease"); lease != "" {
		opts = append(opts, consensus.WithLease(o.Time(lease)))
	}
	one.line.Cut.Store(o.Is("cut"))
	away := int64(o.Time(o.Value("away")))
	one.line.Takes.Store(away)
	one.line.Returns.Store(away)
	l := o.limits()
	if file := int(o.Number(o.Value("file"))); file > 0 {
		l.Max, one.file = file, world.NewFile(file)
		opts = append(opts, protocol.WithFiles(one.file))
	}
	var store driver.Store = &one.line.Link
	if o.Is("news") {
		store = one.line
	}
	m, err := consensus.Join(o.T.Context(), store, name0, opts...)
	require.NoError(o.T, err, o.Line)
	one.m = m
	with := []throttle.Option{throttle.WithSharer(m), throttle.WithTag(o.Value("tag")), throttle.WithLogger(quiet), throttle.OnClose(m.Leave)}
	if o.quotas != nil {
		with = append(with, throttle.WithQuotas(*o.quotas))
	}
	callers, draw := o.Value("callers"), o.Value("draw")
	if slots := o.Value("slots"); slots != "" {
		one.slots, err = throttle.NewInFlight(int(o.Number(slots)), with...)
		o.whole = cmp.Or(o.whole, &meter{slots: int(o.Number(slots))})
	} else {
		one.rate, err = throttle.New(l, with...)
		o.judgeBy(&l, &one.line.Link)
	}
	require.NoError(o.T, err, o.Line)
	o.pods = append(o.pods, one)
	o.mu.Lock()
	o.byName[name] = one
	o.mu.Unlock()
	size := int(o.Number(draw))
	if size == 0 {
		size = one.handful()
	}
	o.crews[name] = o.newCrew(caller{pods: []string{name}, sizes: []int{size}}, int(o.Number(callers)))
}

// handful is how many tokens callers draw at a time: a hundredth of a second's, for minutes of more calls take long to compute. Of a hard
// limit so many tokens are not always to be had at once.
func (p *pod) handful() int {
	if p.rate == nil || p.rate.Limit().Hard {
		return 1
	}
	l := p.rate.Limit()
	return max(1, int(l.Rate()/100))
}

var quiet = slog.New(slog.DiscardHandler)

// name0 is the name of the pool.
const name0 = "pool"
