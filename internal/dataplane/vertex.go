package dataplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Cadence determines when a vertex reads, and when it hands on messages. Its fields are named as limits of the vertex; the zero value has
// the platform's defaults.
type Cadence struct {
	// ReadBatchSize is how many messages are read at once, and the size of a chunk of a sink or a batch map.
	// Defaults to 500.
	ReadBatchSize int
	// ReadTimeout is how long a read may take, and how long a chunk waits for more messages.
	// Defaults to 1 s.
	ReadTimeout time.Duration
	// Concurrency is how many messages may be in a map, and be in flight at all with read-ahead, Streaming
	// or in a Pipeline. Defaults to ReadBatchSize.
	Concurrency int
	// ReadAhead is NUMAFLOW_READ_AHEAD of a MonoVertex.
	ReadAhead bool
	// Streaming is spec.streaming of a MonoVertex, which versions after 1.8.3 have.
	Streaming bool
	// Pipeline says that it is a map or sink vertex of a pipeline, which reads from a buffer.
	Pipeline bool
}

func (c Cadence) withDefaults() Cadence {
	if c.ReadBatchSize == 0 {
		c.ReadBatchSize = 500
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = time.Second
	}
	if c.Concurrency == 0 {
		c.Concurrency = c.ReadBatchSize
	}
	return c
}

// places is how many batches (alone false) or messages (alone true) may be in flight.
func (c Cadence) places() (n int, alone bool) {
	switch {
	case c.Streaming, c.Pipeline:
		return c.Concurrency, true
	case c.ReadAhead:
		return max(1, c.Concurrency/c.ReadBatchSize), false
	}
	return 1, false
}

// A Vertex plays the core of one pod in its own rhythm: it reads, transforms, maps and
// writes as v1.8.3 does, and settles with the source.
//
//   - A MonoVertex reads a batch when it has a place for it: one, or Concurrency / ReadBatchSize
//     with read-ahead. The place is free when all of the batch is settled, in one call.
//   - With Streaming, and in a Pipeline, each message has a place of its own. A pipeline
//     takes ReadBatchSize places before each fetch and gives back those without a
//     message; streaming reads as soon as one is free.
//   - A transformer is given a whole batch at once, and waited for; a unary or stream map has
//     Concurrency messages at once; a batch map and a sink get chunks, which are over when
//     they have ReadBatchSize messages, or ReadTimeout after their first.
//   - A pipeline's map vertex hands its results on at once; a MonoVertex has a sink, if only
//     one that takes everything.
//   - What a map drops is acknowledged, and what a map or a sink nacks is nacked. Any error
//     ends the Vertex; the caller restarts it, as a kubelet would.
//
// Not simulated: watermarks, the grace period of a shutdown (cancel the context of Run: all ends at once, and messages in flight are
// nacked), reduce, serving, and the writing to a buffer.
type Vertex struct {
	Cadence

	// Source is the source; nil: one that always has a Message at once.
	Source  *Source
	Message Message
	// The functions of the vertex; nil: there is none. Map is Map.Do or MapStream.Do, Sink the Write
	// of a SinkWriter.
	Transform func(ctx context.Context, m Message) ([]Result, error)
	Map       func(ctx context.Context, m Message) ([]Result, error)
	BatchMap  func(ctx context.Context, m []Message) ([][]Result, error)
	Sink      func(ctx context.Context, m []Message) ([]Written, error)
}

// Run reads until ctx ends, which is no error, or something fails.
func (v *Vertex) Run(ctx context.Context) error {
	v.Cadence = v.withDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &vertexRun{Vertex: v, ctx: ctx, fail: cancel}
	n, alone := v.places()
	r.places, r.alone = make(chan struct{}, n), alone
	read, mapped := make(chan *flight, 2*v.ReadBatchSize), make(chan *flight, v.ReadBatchSize)
	var stages sync.WaitGroup
	stages.Go(func() { defer close(read); r.read(read) })
	stages.Go(func() { defer close(mapped); r.mapAll(read, mapped) })
	stages.Go(func() { r.write(mapped) })
	stages.Wait()
	r.settling.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

type vertexRun struct {
	*Vertex

	ctx      context.Context //nolint:containedctx // of one run
	fail     context.CancelCauseFunc
	places   chan struct{}
	alone    bool // a place for each message
	settling sync.WaitGroup
}

// read reads batches as long as there are places for them.
func (r *vertexRun) read(out chan<- *flight) {
	for {
		n := r.take()
		if n == 0 {
			return
		}
		msgs, err := r.fetch(n)
		if err != nil {
			r.stop(fmt.Errorf("read: %w", err))
			return
		}
		if r.alone {
			r.give(n - len(msgs))
		} else if len(msgs) == 0 {
			r.give(1)
		}
		batch := r.begin(msgs)
		if !r.transformAll(batch) {
			return
		}
		for _, f := range batch {
			out <- f
		}
	}
}

// take waits for the places of a batch, and returns how many messages to read; 0 when the run
// is over.
func (r *vertexRun) take() int {
	first, most := 1, r.ReadBatchSize
	if r.Pipeline {
		first, most = min(r.ReadBatchSize, cap(r.places)), min(r.ReadBatchSize, cap(r.places))
	}
	for range first {
		select {
		case r.places <- struct{}{}:
		case <-r.ctx.Done():
			return 0
		}
	}
	for n := first; r.alone && n < most; n++ {
		select {
		case r.places <- struct{}{}:
		default:
			return n
		}
	}
	return most
}

func (r *vertexRun) give(n int) {
	for range n {
		<-r.places
	}
}

func (r *vertexRun) fetch(n int) ([]SourceMessage, error) {
	if r.Source != nil {
		return r.Source.Read(r.ctx, n, r.ReadTimeout)
	}
	msgs := make([]SourceMessage, n)
	for i := range msgs {
		msgs[i].Message = r.Message
	}
	return msgs, nil
}

// begin makes the flights of read messages.
func (r *vertexRun) begin(msgs []SourceMessage) []*flight {
	together := &inFlight{left: len(msgs)}
	flights := make([]*flight, len(msgs))
	for i, m := range msgs {
		batch := together
		if r.alone {
			batch = &inFlight{left: 1}
		}
		flights[i] = &flight{Message: m.Message, offset: m.Offset, batch: batch}
	}
	return flights
}

// transformAll gives the transformer a batch, and waits for all of it.
func (r *vertexRun) transformAll(batch []*flight) bool {
	if r.Transform == nil {
		return true
	}
	var all sync.WaitGroup
	for _, f := range batch {
		all.Go(func() {
			results, err := r.Transform(r.ctx, f.Message)
			if err != nil {
				r.stop(fmt.Errorf("transform: %w", err))
				return
			}
			f.Value = results[0].Value
		})
	}
	all.Wait()
	if r.ctx.Err() != nil {
		r.failed(batch)
		return false
	}
	return true
}

// mapAll maps incoming messages.
func (r *vertexRun) mapAll(in <-chan *flight, out chan<- *flight) {
	if r.BatchMap != nil {
		r.chunks(in, func(chunk []*flight) {
			results, err := r.BatchMap(r.ctx, messagesOf(chunk))
			if err != nil {
				r.stop(fmt.Errorf("batch map: %w", err))
				r.failed(chunk)
				return
			}
			for i, f := range chunk {
				r.handOn(f, results[i], out)
			}
		})
		return
	}
	var running sync.WaitGroup
	permits := make(chan struct{}, r.Concurrency)
	for f := range in {
		if r.Map == nil {
			out <- f
			continue
		}
		permits <- struct{}{}
		running.Go(func() {
			defer func() { <-permits }()
			results, err := r.Map(r.ctx, f.Message)
			if err != nil {
				r.stop(fmt.Errorf("map: %w", err))
				r.failed([]*flight{f})
				return
			}
			r.handOn(f, results, out)
		})
	}
	running.Wait()
}

// handOn gives the results of a message to the sink.
func (r *vertexRun) handOn(f *flight, results []Result, out chan<- *flight) {
	var send []Result
	for _, res := range results {
		switch {
		case res.Drop:
		case res.Nack:
			r.settle(f, &Nacked{Offset: f.offset, Options: res.NackOptions})
			return
		default:
			send = append(send, res)
		}
	}
	if len(send) == 0 {
		r.settle(f, nil)
		return
	}
	if len(send) > 1 {
		f.batch.mu.Lock()
		f.batch.left += len(send) - 1
		f.batch.mu.Unlock()
	}
	for i, res := range send {
		part := *f
		part.Keys, part.Value = res.Keys, res.Value
		if i > 0 {
			part.offset = Offset{} // acknowledged with the first
		}
		out <- &part
	}
}

// write gives chunks to the sink. A map vertex of a pipeline is done with mapped messages.
func (r *vertexRun) write(in <-chan *flight) {
	if r.Pipeline && r.Sink == nil {
		for f := range in {
			r.settle(f, nil)
		}
		return
	}
	r.chunks(in, func(chunk []*flight) {
		if r.Sink == nil {
			for _, f := range chunk {
				r.settle(f, nil)
			}
			return
		}
		written, err := r.Sink(r.ctx, messagesOf(chunk))
		if err != nil {
			r.stop(fmt.Errorf("sink: %w", err))
			r.failed(chunk)
			return
		}
		for i, f := range chunk {
			if w := written[i]; w.Nack {
				r.settle(f, &Nacked{Offset: f.offset, Options: w.NackOptions})
				continue
			}
			r.settle(f, nil)
		}
	})
}

// chunks calls do with full chunks, and with what there is ReadTimeout after the first of a
// chunk came.
func (r *vertexRun) chunks(in <-chan *flight, do func(chunk []*flight)) {
	for open := true; open; {
		var chunk []*flight
		var late <-chan time.Time
		for over := false; !over; {
			select {
			case f, ok := <-in:
				if !ok {
					over, open = true, false
					break
				}
				if len(chunk) == 0 {
					late = time.After(r.ReadTimeout)
				}
				chunk = append(chunk, f)
				over = len(chunk) == r.ReadBatchSize
			case <-late:
				over = true
			}
		}
		if len(chunk) > 0 {
			do(chunk)
		}
	}
}
