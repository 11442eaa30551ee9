package dataplane

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A flight is a message between the source and its settlement, or a map's result for it.
type flight struct {
	Message

	offset Offset
	batch  *inFlight
}

// An inFlight is messages that are settled together.
type inFlight struct {
	mu     sync.Mutex
	left   int // messages, and results of a map in their place
	acked  []Offset
	nacked []Nacked
}

func messagesOf(chunk []*flight) []Message {
	msgs := make([]Message, len(chunk))
	for i, f := range chunk {
		msgs[i] = f.Message
	}
	return msgs
}

// failed nacks messages of a vertex that is over.
func (r *vertexRun) failed(chunk []*flight) {
	for _, f := range chunk {
		r.settle(f, &Nacked{Offset: f.offset})
	}
}

// settle records the outcome of a message. The last of a batch settles it with the source.
func (r *vertexRun) settle(f *flight, nack *Nacked) {
	b := f.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.left--; {
	case len(f.offset.Value) == 0:
	case nack != nil:
		b.nacked = append(b.nacked, *nack)
	default:
		b.acked = append(b.acked, f.offset)
	}
	if b.left == 0 {
		r.settling.Go(func() {
			r.tell(b)
			r.give(1)
		})
	}
}

// tell tells the source, also after the end of the run.
func (r *vertexRun) tell(b *inFlight) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), 5*time.Second)
	defer cancel()
	if len(b.acked) > 0 {
		if err := r.Source.Ack(ctx, b.acked); err != nil {
			r.stop(fmt.Errorf("acknowledge: %w", err))
		}
	}
	if len(b.nacked) > 0 {
		if err := r.Source.Nack(ctx, b.nacked); err != nil {
			r.stop(fmt.Errorf("nack: %w", err))
		}
	}
}

func (r *vertexRun) stop(err error) {
	if r.ctx.Err() == nil {
		r.fail(err)
	}
}
