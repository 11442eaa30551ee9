package noloss

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// An outcome is what the platform would take an answer for.
type outcome struct {
	// nacked: it is sent again.
	nacked bool
	// wrong is an answer that is not what the handler returns.
	wrong string
}

// A feed is an open stream to a handler process, which is offered messages.
type feed interface {
	// offer sends messages and waits for the outcome of each; an error is that of
	// all of them.
	offer(ctx context.Context, ids []int) ([]outcome, error)
	stream
}

// openFeed opens the stream that a kind of handler needs.
func openFeed(ctx context.Context, j job, opts ...dataplane.Option) (feed, error) {
	switch j.Kind {
	case kindMap:
		m, err := dataplane.Dial(ctx, j.Socket, opts...)
		return singleFeed{m, 1, m.Do}, err
	case kindBatchMap:
		m, err := dataplane.DialBatchMap(ctx, j.Socket, opts...)
		return batchFeed{m}, err
	case kindMapStream:
		m, err := dataplane.DialMapStream(ctx, j.Socket, opts...)
		return singleFeed{m, 2, m.Do}, err
	case kindTransform:
		m, err := dataplane.DialTransform(ctx, j.Socket, opts...)
		return singleFeed{m, 1, m.Do}, err
	case kindSink:
		k, err := dataplane.DialSink(ctx, j.Socket, opts...)
		return sinkFeed{k}, err
	case kindSource:
		s, err := dataplane.DialSource(ctx, j.Socket, opts...)
		return sourceFeed{s}, err
	}
	return nil, fmt.Errorf("no feed for kind %q", j.Kind)
}

// A stream is what all streams have.
type stream interface {
	Close() error
	Abort()
	Broken() <-chan struct{}
	Stats() dataplane.Stats
}

// A singleStream is one of messages that have an answer each.
type singleStream interface {
	stream
	Stop(g dataplane.Grace) dataplane.End
}

// A singleFeed offers single messages to a handler that is to answer with some results.
type singleFeed struct {
	singleStream
	results int
	do      func(ctx context.Context, m dataplane.Message) ([]dataplane.Result, error)
}

func (f singleFeed) offer(ctx context.Context, ids []int) ([]outcome, error) {
	got, err := f.do(ctx, messages(ids)[0])
	if err != nil {
		return nil, err
	}
	return []outcome{outcomeOf(ids[0], got, f.results)}, nil
}

type batchFeed struct{ *dataplane.BatchMap }

func (f batchFeed) offer(ctx context.Context, ids []int) ([]outcome, error) {
	results, err := f.Do(ctx, messages(ids))
	if err != nil {
		return nil, err
	}
	out := make([]outcome, len(ids))
	for i, r := range results {
		out[i] = outcomeOf(ids[i], r, 1)
	}
	return out, nil
}

type sinkFeed struct{ *dataplane.Sink }

func (f sinkFeed) offer(ctx context.Context, ids []int) ([]outcome, error) {
	results, err := f.Do(ctx, messages(ids))
	if err != nil {
		return nil, err
	}
	out := make([]outcome, len(ids))
	for i, r := range results {
		switch r.Status {
		case dataplane.SinkSuccess:
		case dataplane.SinkNack, dataplane.SinkFailure:
			out[i].nacked = true
		default:
			out[i].wrong = string(r.Status)
		}
	}
	return out, nil
}

func messages(ids []int) []dataplane.Message {
	msgs := make([]dataplane.Message, len(ids))
	for i, id := range ids {
		msgs[i] = dataplane.Message{Value: []byte(strconv.Itoa(id))}
	}
	return msgs
}

// outcomeOf compares with what the handler answers: the last of its results begins
// with "done <id>".
func outcomeOf(id int, got []dataplane.Result, results int) outcome {
	switch {
	case len(got) == 0:
		return outcome{wrong: "empty"}
	case got[len(got)-1].Drop:
		return outcome{wrong: "drop"}
	case got[len(got)-1].Nack:
		return outcome{nacked: true}
	case len(got) != results || !bytes.HasPrefix(got[results-1].Value, done(strconv.Itoa(id))):
		last := got[len(got)-1].Value
		return outcome{wrong: fmt.Sprintf("%d results, the last %q", len(got), last[:min(len(last), 20)])}
	}
	return outcome{}
}
