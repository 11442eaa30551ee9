package mapper

import (
	"context"
	"errors"
	"runtime/debug"
	"sync/atomic"

	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A pump passes the outputs of one message on. Its goroutine, run, ends at once when there is nothing left to do.
//
// Pumps are reused for later messages: a new one for each made a sixth more garbage than the bare handler.
type pump struct {
	*stream

	users atomic.Int32 // the wrapper and run; when both are done, it goes back to the pool
	start func()       // is run; kept, for it is garbage too
	// by is set once, by the side that passes the outputs on: run, or the wrapper when the handler has returned.
	by atomic.Pointer[hands]

	passing
}

// passing is a pump's state for one message.
type passing struct {
	ctx      context.Context           //nolint:containedctx // the message's; lives as long as its call
	handling context.Context           //nolint:containedctx // the handler's, which descends from ctx
	from     chan mapstreamsdk.Message // closed by the handler
	to       chan<- mapstreamsdk.Message
	// With PerOutput: an output's tag and cost, and how to end the handler's context.
	outputTag  string
	outputCost int
	cancel     context.CancelCauseFunc

	// The following fields belong to the side that passes the outputs on, until it is done.
	output   mapstreamsdk.Message // the last one
	passed   int                  // outputs
	drops    int                  // outputs that are drops
	err      error
	panicked any
}

// hands holds the signals between a goroutine of the pump and the wrapper.
type hands struct {
	left chan struct{} // closed when the wrapper has left the call
	done chan struct{} // closed when nothing more is passed on
}

func newHands() *hands { return &hands{make(chan struct{}), make(chan struct{})} }

// ownHands marks a wrapper that passes the outputs on itself.
var ownHands = new(hands)

// newPump returns a pump, which the caller starts, and ends with end.
func (w *stream) newPump(ctx context.Context, to chan<- mapstreamsdk.Message) *pump {
	p, ok := w.pumps.Get().(*pump)
	if !ok {
		p = &pump{stream: w}
		p.start = p.run
	}
	ahead := 1 // a handler with one output does not wait for the pump
	if p.perOutput {
		ahead = 0 // it makes no output before the one before it has its tokens
	}
	p.users.Store(2)
	p.ctx, p.handling, p.to, p.from = ctx, ctx, to, make(chan mapstreamsdk.Message, ahead)
	return p
}

// end releases the wrapper's hold on the pump. answered is false if the wrapper leaves the call without an answer.
func (p *pump) end(answered bool) {
	if answered {
		p.release()
		return
	}
	// Goroutines that may still use it keep it.
	if !p.by.CompareAndSwap(nil, ownHands) && p.by.Load() != ownHands {
		close(p.by.Load().left)
	}
}

func (p *pump) release() {
	if p.users.Add(-1) > 0 {
		return
	}
	p.passing = passing{}
	p.by.Store(nil)
	p.pumps.Put(p)
}

// run passes the outputs on, unless the wrapper does.
func (p *pump) run() {
	if p.by.Load() == nil {
		if h := newHands(); p.by.CompareAndSwap(nil, h) {
			p.passOn(h)
			return
		}
	}
	p.release()
}

// passRest passes the outputs on if the handler has returned before run has begun, as is common after a quick handler. That saves two
// switches of goroutines. Otherwise it waits until run is done.
func (p *pump) passRest() {
	if !p.by.CompareAndSwap(nil, ownHands) {
		<-p.by.Load().done
		return
	}
	for p.step() {
	}
}

// passOn passes outputs on until the handler closes its channel, or no more can be passed on; then err says why. After that it discards
// outputs until the handler has ended, so that it is not stuck.
func (p *pump) passOn(h *hands) {
	defer p.release()
	defer p.discard(h)
	defer close(h.done)
	defer func() {
		if p.panicked = recover(); p.panicked != nil {
			p.Abandoner.Logger().Error("panic in the limiter", "stack", string(debug.Stack()))
		}
		if p.err != nil && p.cancel != nil {
			p.cancel(p.err)
		}
	}()
	for p.step() {
	}
	if p.err != nil && p.ctx.Done() != nil {
		p.Abandoner.Hold(p.handling, p.err)
	}
}

// step passes one output on, and reports whether there may be another one. The usual cases come first, without a wait: they are cheaper,
// and their frames are small; see MapStream.
func (p *pump) step() bool {
	var ok bool
	select {
	case p.output, ok = <-p.from:
	default:
		ok = p.await()
	}
	if !ok {
		return false
	}
	if p.perOutput || p.ExemptDropped {
		p.err = p.pass()
		return p.err == nil
	}
	select {
	case p.to <- p.output:
	default:
		p.err = p.send()
	}
	return p.err == nil
}

// await waits for an output, and reports whether there is one.
func (p *pump) await() (ok bool) {
	select {
	case p.output, ok = <-p.from:
		return ok
	case <-p.handling.Done():
		p.err = context.Cause(p.handling)
	case <-p.by.Load().left:
		p.err = errLeft
	}
	return false
}

// pass passes the output on, with PerOutput once it has its tokens, and counts it.
func (p *pump) pass() error {
	drop := p.ExemptDropped && admission.IsDrop(p.output.Tags())
	var permit throttle.Permit
	if p.perOutput && !drop {
		var err error
		if permit, err = p.Admitter.Admit(p.handling, p.outputTag, p.outputCost); err != nil {
			if denied, ok := errors.AsType[*admission.Denied](err); ok && p.passed > 0 {
				return denied.Err // an answer that has begun cannot be taken back
			}
			return err
		}
	}
	p.passed++
	if drop {
		p.drops++
	}
	err := p.send()
	if err != nil {
		permit.Cancel()
	}
	return err
}

func (p *pump) send() error {
	select {
	case p.to <- p.output:
		return nil
	case <-p.handling.Done():
		return context.Cause(p.handling)
	case <-p.by.Load().left:
		return errLeft
	}
}

func (p *pump) discard(h *hands) {
	for {
		select {
		case _, ok := <-p.from:
			if !ok {
				return
			}
		case <-h.left:
			return
		}
	}
}

// onlyDrops reports whether the platform forwards nothing of the answer.
func (p *pump) onlyDrops() bool { return p.passed > 0 && p.drops == p.passed }
