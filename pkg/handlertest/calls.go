package handlertest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// Map gives messages to a unary map, all at once (at most 500 are in flight), and waits for all answers. results[i] is what the
// handler made of msgs[i]; it is empty when the answer was.
//
// Errors: [ErrProtocol], [ErrBroken], the cause of ctx. The text names the first message that failed; results has those of the
// others.
func (h *Handler) Map(ctx context.Context, msgs ...Message) (results [][]Result, err error) {
	return each(ctx, h, "Map", dataplane.Dial, (*dataplane.Map).Do, msgs)
}

// MapStream gives messages to a stream map; otherwise it is like Map. It returns when the handler has ended its answer to each.
func (h *Handler) MapStream(ctx context.Context, msgs ...Message) (results [][]Result, err error) {
	return each(ctx, h, "MapStream", dataplane.DialMapStream, (*dataplane.MapStream).Do, msgs)
}

// Transform gives messages to a source transformer; otherwise it is like Map. An empty answer breaks the protocol.
func (h *Handler) Transform(ctx context.Context, msgs ...Message) (results [][]Result, err error) {
	return each(ctx, h, "Transform", dataplane.DialTransform, (*dataplane.Transform).Do, msgs)
}

// BatchMap gives messages to a batch map, as one batch, and waits for its end. results[i] is what the handler made of msgs[i].
// Errors are as those of Map; with one there are no results, for the core would have the whole batch delivered again.
func (h *Handler) BatchMap(ctx context.Context, msgs ...Message) (results [][]Result, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s, err := open(ctx, h, "BatchMap", dataplane.DialBatchMap)
	if err != nil {
		return nil, err
	}
	answers, err := s.Do(ctx, sentAll(msgs))
	if err != nil {
		return nil, explain(err)
	}
	results = make([][]Result, len(answers))
	for i, a := range answers {
		results[i] = resultsOf(a)
	}
	return results, nil
}

// Sink gives messages to a sink (main, fallback or on-success), as one batch, and waits for its end. responses[i] is what the
// sink said to msgs[i]. Nothing is tried again, and nothing goes to another sink. Errors are as those of BatchMap.
func (h *Handler) Sink(ctx context.Context, msgs ...Message) (responses []Response, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s, err := open(ctx, h, "Sink", dataplane.DialSink)
	if err != nil {
		return nil, err
	}
	answers, err := s.Do(ctx, sentAll(msgs))
	if err != nil {
		return nil, explain(err)
	}
	responses = make([]Response, len(answers))
	for i := range answers {
		responses[i] = responseOf(&answers[i])
	}
	return responses, nil
}

// Read asks a source for up to count messages within timeout, a whole number of milliseconds, and returns what came until the
// source ended the read. Each message has its Offset; settle it with Ack or Nack. Calls to a source go one after the other, as
// from the core.
//
// Errors: [ErrProtocol], [ErrBroken] and the cause of ctx, with the messages that came before.
func (h *Handler) Read(ctx context.Context, count int, timeout time.Duration) ([]Message, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s, err := open(ctx, h, "Read", dataplane.DialSource)
	if err != nil {
		return nil, err
	}
	read, err := s.Read(ctx, count, timeout)
	msgs := make([]Message, len(read))
	for i, m := range read {
		msgs[i] = Message{Keys: m.Keys, Value: m.Value, EventTime: m.EventTime, Headers: m.Headers, Offset: Offset(m.Offset)}
	}
	return msgs, explain(err)
}

// Ack acknowledges messages of a source, by their offsets, and waits for its answer. Errors are as those of Read.
func (h *Handler) Ack(ctx context.Context, msgs ...Message) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s, err := open(ctx, h, "Read", dataplane.DialSource)
	if err != nil {
		return err
	}
	return explain(s.Ack(ctx, offsetsOf(msgs)))
}

// Nack refuses messages of a source, by their offsets, and waits for its answer. Errors are as those of Read.
func (h *Handler) Nack(ctx context.Context, options NackOptions, msgs ...Message) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s, err := open(ctx, h, "Read", dataplane.DialSource)
	if err != nil {
		return err
	}
	nacked := make([]dataplane.Nacked, len(msgs))
	for i, o := range offsetsOf(msgs) {
		nacked[i].Offset = o
		if options != (NackOptions{}) {
			given := dataplane.NackOptions(options)
			nacked[i].Options = &given
		}
	}
	return explain(s.Nack(ctx, nacked))
}

// Pending asks a source how many messages wait in it; a negative number is that it does not know. Errors are as those of Read.
func (h *Handler) Pending(ctx context.Context) (int64, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s, err := open(ctx, h, "Read", dataplane.DialSource)
	if err != nil {
		return 0, err
	}
	n, err := s.Pending(ctx)
	return n, explain(err)
}

// each gives each message alone to do, all at once.
func each[S stream](ctx context.Context, h *Handler, kind string,
	dial func(ctx context.Context, socket string, opts ...dataplane.Option) (S, error),
	do func(s S, ctx context.Context, m dataplane.Message) ([]dataplane.Result, error),
	msgs []Message,
) ([][]Result, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s, err := open(ctx, h, kind, dial)
	if err != nil {
		return nil, err
	}
	results, errs := make([][]Result, len(msgs)), make([]error, len(msgs))
	var all sync.WaitGroup
	for i := range msgs {
		all.Go(func() {
			var answer []dataplane.Result
			answer, errs[i] = do(s, ctx, msgs[i].sent())
			results[i] = resultsOf(answer)
		})
	}
	all.Wait()
	return results, firstOf(errs)
}

// firstOf says what the first message that failed has met, and how many did.
func firstOf(errs []error) error {
	first, failed := -1, 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		if failed++; first < 0 {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	others := ""
	if failed > 1 {
		others = fmt.Sprintf(", and %d more", failed-1)
	}
	return fmt.Errorf("msgs[%d] of %d%s: %w", first, len(errs), others, explain(errs[first]))
}
