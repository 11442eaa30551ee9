package mapper

import (
	"context"
	"runtime/debug"

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
	// done is closed when nothing more is passed on. What follows may be read from
	// then on.
	done     chan struct{}
	passed   int // outputs, of which
	drops    int // are drops
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

// run passes outputs on until the handler closes its channel, or no more can be
// passed on; then err says why. After that it throws away what comes until the
// handler has ended, so that it is not stuck. ctx is the message's, handling the
// handler's, which descends from it.
func (p *pump) run(ctx, handling context.Context) {
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
	for {
		m, ok := p.next(handling)
		if !ok {
			return
		}
		if p.err = p.pass(handling, m); p.err != nil {
			if ctx.Done() != nil {
				p.abandoner.Hold(handling, p.err)
			}
			return
		}
	}
}

// next returns the next output; ok is false after the last, and where no more can be passed on.
func (p *pump) next(handling context.Context) (m mapstreamsdk.Message, ok bool) {
	select { // the usual case by itself, which is cheaper
	case m, ok = <-p.from:
		return m, ok
	default:
	}
	select {
	case m, ok = <-p.from:
		return m, ok
	case <-handling.Done():
		p.err = context.Cause(handling)
	case <-p.left:
		p.err = errLeft
	}
	return m, false
}

// pass passes an output on, with PerOutput once it has its tokens.
func (p *pump) pass(handling context.Context, m mapstreamsdk.Message) error {
	drop := p.exemptDropped && isDrop(m.Tags())
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
	select { // as in next
	case p.to <- m:
		return nil
	default:
	}
	select {
	case p.to <- m:
		return nil
	case <-handling.Done():
		permit.Cancel()
		return context.Cause(handling)
	case <-p.left:
		permit.Cancel()
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
