package main

import (
	"context"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
)

// The handlers that get or give messages through a channel, with the least in front of them that a wrapper needs to hold a message
// back or to see it: a goroutine that passes each one on, and neither draws for it nor looks at it. What a wrapper takes beyond
// that is its own.
type (
	passingBatch  struct{ next batchmapsdk.BatchMapper }
	passingStream struct{ next mapstreamsdk.MapStreamer }
	passingSink   struct{ next sinksdk.Sinker }
)

// passedAhead is how many messages of a batch wait for a busy handler, as many as the wrappers let.
const passedAhead = 64

func (p passingBatch) BatchMap(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	out := make(chan batchmapsdk.Datum, passedAhead)
	go passOn(in, out)
	return p.next.BatchMap(ctx, out)
}

func (p passingSink) Sink(ctx context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
	out := make(chan sinksdk.Datum, passedAhead)
	go passOn(in, out)
	return p.next.Sink(ctx, out)
}

func (p passingStream) MapStream(ctx context.Context, keys []string, d mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
	from := make(chan mapstreamsdk.Message, 1)
	go p.next.MapStream(ctx, keys, d, from)
	passOn(from, to)
}

func passOn[T any](from <-chan T, to chan<- T) {
	defer close(to)
	for m := range from {
		to <- m
	}
}
