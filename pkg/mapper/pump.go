package mapper

import (
	"context"
	"runtime/debug"
	"sync/atomic"

	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A pump passes the outputs of one message on.
type pump struct {
	*throttled

	from chan mapstreamsdk.Message   // closed by the handler
	to   chan<- mapstreamsdk.Message // closed by the wrapper
	// With PerOutput: what an output draws, and how to end the handler's context.
	outputTag  string
	outputCost int
	cancel     context.CancelCauseFunc

	// left is closed when the wrapper has left the call.
	left chan struct{}
	// begun is set by who passes the outputs on: run, or the wrapper when the handler has returned.
	begun atomic.Bool
	// done is closed when nothing more is passed on. What follows may be read from
	// then on.
	done     chan struct{}
	output   mapstreamsdk.Message // the last one
	passed   int                  // outputs, of which
	drops    int                  // are drops
	err      error
	panicked any
}

func newPump(t *throttled, to chan<- mapstreamsdk.Message) *pump {
	ahead := 1 // a handler with one output does not wait for the pump
	if t.perOutput {
		ahead = 0 // it makes no output before the one before it has its tokens
	}
	return &pump{
		throttled: t,
		from:      make(chan mapstreamsdk.Message, ahead),
		to:        to,
		left:      make(chan struct{}),
		done:      make(chan struct{}),
	}
}

// run passes outputs on until the handler closes its channel, or no more can be passed
// on; then err says why. After that it throws away what comes until the handler has
// ended, so that it is not stuck. It does nothing when the wrapper passes them on. ctx is
// the message's, handling the handler's, which descends from it.
func (p *pump) run(ctx, handling context.Context) {
	if !p.begun.CompareAndSwap(false, true) {
		return
	}
	defer p.discard()
	defer close(p.done)
	defer func() {
		if p.panicked = recover(); p.panicked != nil {
			p.abandoner.Logger().Error("panic in the limiter", "stack", string(debug.Stack()))
		}
		if p.err != nil && p.cancel != nil {
			p.cancel(p.err)
		}
	}()
	for p.step(handling) {
	}
	if p.err != nil && ctx.Done() != nil {
		p.abandoner.Hold(handling, p.err)
	}
}

// step passes one output on, and tells whether there may be another one. The usual cases stand by themselves: they are
// cheaper than those with a wait, and their frames are small; see MapStream.
func (p *pump) step(handling context.Context) bool {
	var ok bool
	select {
	case p.output, ok = <-p.from:
	default:
		ok = p.await(handling)
	}
	if !ok {
		return false
	}
	if p.perOutput || p.exemptDropped {
		p.err = p.pass(handling)
		return p.err == nil
	}
	select {
	case p.to <- p.output:
	default:
		p.err = p.send(handling)
	}
	return p.err == nil
}

// await waits for an output, and tells whether there is one.
func (p *pump) await(handling context.Context) (ok bool) {
	select {
	case p.output, ok = <-p.from:
		return ok
	case <-handling.Done():
		p.err = context.Cause(handling)
	case <-p.left:
		p.err = errLeft
	}
	return false
}

// pass passes the output on, with PerOutput once it has its tokens, and counts it.
func (p *pump) pass(handling context.Context) error {
	drop := p.exemptDropped && isDrop(p.output.Tags())
	var permit throttle.Permit
	if p.perOutput && !drop {
		var err error
		if permit, err = p.gate.Admit(handling, p.outputTag, p.outputCost); err != nil {
			return err
		}
	}
	p.passed++
	if drop {
		p.drops++
	}
	err := p.send(handling)
	if err != nil {
		permit.Cancel()
	}
	return err
}

func (p *pump) send(handling context.Context) error {
	select {
	case p.to <- p.output:
		return nil
	case <-handling.Done():
		return context.Cause(handling)
	case <-p.left:
		return errLeft
	}
}

func (p *pump) discard() {
	for {
		select {
		case _, ok := <-p.from:
			if !ok {
				return
			}
		case <-p.left:
			return
		}
	}
}

// onlyDrops tells whether the platform forwards nothing of the answer.
func (p *pump) onlyDrops() bool { return p.passed > 0 && p.drops == p.passed }
