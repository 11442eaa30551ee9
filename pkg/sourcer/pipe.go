package sourcer

import (
	"context"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
)

// maxPipe bounds how many messages next may be ahead of the stream.
const maxPipe = 64

// A pipe counts the messages of one Read on their way to the platform. numaflow-go
// and next see an ordinary channel each. Counting needs a goroutine, since next
// runs in the one that numaflow-go called: only there a panic can be recovered.
type pipe struct {
	in   chan sourcesdk.Message // for next
	quit chan struct{}          // closed: empty the channel, and end
	done chan struct{}          // closed: ended; the following fields may be read

	cost     func(m sourcesdk.Message) int // nil: 1
	sent     int                           // messages
	used     int                           // tokens that they cost
	most     int                           // that a message may cost
	over     int                           // messages that cost more
	panicked any                           // of cost
}

func newPipe(ctx context.Context, out chan<- sourcesdk.Message, cost func(sourcesdk.Message) int, most, count int) *pipe {
	p := &pipe{
		in:   make(chan sourcesdk.Message, min(count, maxPipe)),
		quit: make(chan struct{}),
		done: make(chan struct{}),
		cost: cost,
		most: most,
	}
	go p.run(ctx, out)
	return p
}

// flush is called when next has returned. If next sends later, that is its own error, and panics here as it would without the wrapper.
func (p *pipe) flush() {
	close(p.in)
	<-p.done
}

// shut ends the pipe, however next ended, after all messages sent are passed on.
func (p *pipe) shut() {
	close(p.quit)
	<-p.done
}

func (p *pipe) run(ctx context.Context, out chan<- sourcesdk.Message) {
	defer close(p.done)
	for {
		var m sourcesdk.Message
		var ok bool
		select { // the usual case by itself, which is cheaper
		case m, ok = <-p.in:
		default:
			select {
			case m, ok = <-p.in:
			case <-p.quit:
				p.rest(ctx, out)
				return
			}
		}
		if !ok {
			return
		}
		p.pass(ctx, m, out)
	}
}

// rest passes on the messages left in the channel.
func (p *pipe) rest(ctx context.Context, out chan<- sourcesdk.Message) {
	for {
		select {
		case m, ok := <-p.in:
			if !ok {
				return
			}
			p.pass(ctx, m, out)
		default:
			return
		}
	}
}

func (p *pipe) pass(ctx context.Context, m sourcesdk.Message, out chan<- sourcesdk.Message) {
	p.count(m)
	select { // as above
	case out <- m:
		return
	default:
	}
	select {
	case out <- m:
	case <-ctx.Done():
		// The stream is over and nobody reads out. numaflow-go would leave next blocked
		// here; the message has no acknowledgement either way.
	}
}

func (p *pipe) count(m sourcesdk.Message) {
	p.sent++
	if p.cost == nil || p.panicked != nil {
		p.used++
		return
	}
	defer func() {
		if p.panicked = recover(); p.panicked != nil {
			p.used++
		}
	}()
	cost := max(p.cost(m), 0)
	if cost > p.most {
		cost = p.most
		p.over++
	}
	p.used += cost
}
