package whatif

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/virtual"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	// trip is how long a message to or from the store takes.
	trip = 500 * time.Microsecond
	// watch is how often a pod whose ceiling moves looks at it, as consensus.Member does.
	watch = 100 * time.Millisecond
)

// A pool is the pods of one configuration in a world. Its store is in memory, answers each request, and never loses anything.
type pool struct {
	w     *virtual.World
	conf  *opening.Config
	store *memstore.Store
	pods  []*pod
	born  uint64 // incarnations and requests so far
}

// newPool starts so many pods. A single one has the whole limit, and needs no pool. With a store of static://N each has a fixed part of the
// limit, and they form none either.
func newPool(w *virtual.World, conf *opening.Config, pods int) (*pool, error) {
	p := &pool{w: w, conf: conf, store: memstore.New(memstore.WithClock(w.Now))}
	for i := range pods {
		d, err := p.start(fmt.Sprintf("pod-%d", i), pods == 1)
		if err != nil {
			return nil, err
		}
		p.pods = append(p.pods, d)
	}
	return p, nil
}

// start starts a pod. Without a limit it does nothing but grant.
func (p *pool) start(id string, single bool) (*pod, error) {
	d := &pod{pool: p, w: p.w}
	clock := hook.WithClock(p.w).(throttle.Option) //nolint:errcheck,forcetypeassert // as documented
	opts := []throttle.Option{throttle.WithName(p.conf.Pool), clock}
	if p.conf.Quotas.Given() {
		opts = append(opts, throttle.WithQuotas(p.conf.Quotas))
	}
	url, faults := config.ParseStore(p.conf.Store)
	switch {
	case p.conf.Limit.Max == 0:
	case len(faults) == 0 && url.Kind == config.Static:
		share, err := throttle.Replicas(url.Replicas)
		if err != nil {
			return nil, err
		}
		opts = append(opts, throttle.WithSharer(share))
	case single && !p.conf.Limit.Strict:
	default:
		policy := protocol.Policy(protocol.Fair)
		if p.conf.Policy == opening.PolicyEven {
			policy = protocol.Even
		}
		d.proc = protocol.NewProcessor(protocol.ProcessorConfig{
			Pool: "what-if", ID: id, Lease: p.conf.Lease, Policy: policy, OnStoreLoss: protocol.Stop,
		}, p.incarnation())
		opts = append(opts, throttle.WithSharer(d))
	}
	var err error
	if d.th, err = throttle.New(p.conf.Limit, opts...); err != nil {
		return nil, err
	}
	return d, nil
}

// incarnation returns a name that no other process of the pool has.
func (p *pool) incarnation() string {
	p.born++
	return fmt.Sprint("life-", p.born)
}

// end closes the limiters, so that all who wait fail.
func (p *pool) end() {
	for _, d := range p.pods {
		_ = d.th.Close() // nothing runs then
		d.over = true
	}
}

// A pod is one process: the shipped limiter and protocol.Processor, joined as consensus.Member joins them, but by events of a world.
type pod struct {
	*pool

	w      *virtual.World
	th     *throttle.Throttle
	proc   *protocol.Processor // nil: it is in no pool
	holder sharing.Holder
	terms  sharing.Terms
	pushed protocol.Orders
	timer  sharing.Timer
	fast   bool // its ceiling moves

	over, syncing, poked bool
	spread               float64
	sentFlow, flow       protocol.FlowAt // at the newest request, and at the newest answered one
}

var _ sharing.Pool = (*pod)(nil)

// Attach implements sharing.Sharer.
func (d *pod) Attach(h sharing.Holder) {
	d.holder, d.terms, d.spread = h, h.Terms(), d.w.Float64()
	d.proc.Configure(d.terms)
	d.fast = d.conf.Limit.Ramps() || d.conf.Limit.Adaptive
	d.push()
	d.timer = d.w.AfterFunc(0, d.turn)
}

// Poke implements sharing.Sharer. The limiter may be locked.
func (d *pod) Poke() {
	if d.poked {
		return
	}
	d.poked = true
	d.w.At(d.w.Since(), func() {
		d.poked = false
		now := d.w.Since()
		if d.proc.Poke(now); !d.syncing {
			d.timer.Reset(d.proc.Next(now, d.spread) - now)
		}
	})
}

// turn does what is due, as the loop of a consensus.Member.
func (d *pod) turn() {
	if d.over {
		return
	}
	now := d.w.Since()
	d.proc.Tick(now)
	if d.push(); d.syncing {
		return // its answer goes on
	}
	wait := d.proc.Next(now, d.spread) - now
	if left := d.proc.Until() - now; left > 0 {
		wait = min(wait, left)
	}
	if d.fast {
		wait = min(wait, watch)
	}
	if wait > 0 {
		d.timer.Reset(max(wait, time.Millisecond))
		return
	}
	d.syncing = true
	req := d.request(now)
	d.w.At(now+trip, func() {
		ans, err := d.store.Sync(context.Background(), req)
		d.w.At(now+2*trip, func() { d.take(req, ans, err) })
	})
}

// request returns the next request, made from the holder's report.
func (d *pod) request(now time.Duration) driver.Request {
	asked := d.holder.Report(2 * d.proc.Interval())
	d.proc.Yield(now, driver.Share(asked.Demand), d.holder.ReportTags(d.proc.TagKeep()))
	d.push()
	r := d.holder.Report(0)
	d.sentFlow = protocol.FlowAt{Usage: r.Usage, At: now}
	l := d.terms.Ceiling.Limit
	o := protocol.Observation{
		Demand: driver.Share(asked.Demand), Needs: [2]driver.Share{driver.Share(asked.Needs[0]), driver.Share(asked.Needs[1])},
		InUse: driver.Share(r.InUse), Served: r.Usage.Served,
	}
	o.Used, o.Offered = d.sentFlow.Since(d.flow.Usage, now-d.flow.At, int(l.Max), l.Per)
	d.born++
	req := d.proc.Request(now, d.born, o)
	d.push()
	return req
}

// take takes the answer of the store.
func (d *pod) take(req driver.Request, ans driver.Answer, err error) {
	if d.over {
		return
	}
	now := d.w.Since()
	d.syncing, d.spread = false, d.w.Float64()
	if err != nil {
		d.proc.Failed(now, req.Seq)
	} else if err = d.proc.Take(now, ans, d.incarnation()); err == nil {
		d.flow = d.sentFlow
	}
	d.turn()
}

// push gives the limiter the orders in force that it does not have yet.
func (d *pod) push() {
	last, o := &d.pushed, d.proc.Orders(d.w.Since(), 2*watch, d.w.Epoch())
	if !slices.Equal(o.Pauses, last.Pauses) {
		d.holder.SetPauses(o.Pauses)
	}
	if q, ok := d.holder.(sharing.QuotaHolder); ok && o.Quotas != nil {
		q.SetQuotas(*o.Quotas)
	}
	if o.Grants != nil {
		d.holder.GrantTags(o.Grants)
	}
	if o.Lease != last.Lease {
		d.holder.Lease(o.Lease)
	}
	d.pushed = protocol.Orders{Pauses: o.Pauses, Lease: o.Lease}
}

// Reserve implements sharing.Pool.
func (d *pod) Reserve(o sharing.Order, done func(sharing.Slots, error)) {
	sent := d.w.Since()
	req, o := d.proc.Reserve(sent, o)
	d.w.At(sent+trip, func() {
		res, err := d.store.Reserve(context.Background(), req)
		d.w.At(sent+2*trip, func() { done(d.proc.Reserved(o, res, 2*trip, d.w.Float64(), err)) })
	})
}

var errNoPauses = errors.New("nothing is paused in a replay")

// Pause implements sharing.Pool.
func (*pod) Pause(context.Context, time.Time, string, ...limit.PauseOption) (limit.PauseReceipts, error) {
	return limit.PauseReceipts{}, errNoPauses
}

// Resume implements sharing.Pool.
func (*pod) Resume(context.Context, ...limit.PauseOption) error { return errNoPauses }

// RetryAfter implements sharing.Pool. No called service refuses calls here.
func (*pod) RetryAfter(time.Time, string) {}
