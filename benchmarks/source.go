package main

import (
	"context"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var sourceSection = section{
	key: "source", title: "A source at its limit",
	shows: "A source that always has messages, read like the platform does: up to 500 messages within a second, each batch acknowledged before " +
		"the next. Messages as a fraction of the limit, between the ends of two Reads, and the number of Reads.",
	measure: measureSource,
}

func measureSource(ctx context.Context, b *bench) ([]table, error) {
	t := table{head: []string{"limit per second", "messages", "of the limit", "Reads per second"}}
	for _, limit := range []int{10, 100, 1000, 5000} {
		b.sayf("%d per second", limit)
		l, err := throttle.New(throttle.Limit{Max: limit})
		if err != nil {
			return nil, err
		}
		messages, reads, took, err := readFor(ctx, b, sourcer.Wrap(&spring{}, l), b.long(20*time.Second))
		if closing := l.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return nil, fmt.Errorf("%d per second: %w", limit, err)
		}
		of, often := float64(messages)/(float64(limit)*took.Seconds()), float64(reads)/took.Seconds()
		t.rows = append(t.rows, judged(of >= 0.99 && of <= 1.001 && often < 50, "0.99 to 1.00, less than 50 Reads",
			count(limit), count(messages), fmt.Sprintf("%.4f", of), fmt.Sprintf("%.1f", often)))
	}
	return []table{t}, nil
}

// readFor reads a source for about d, and counts from the end of the Read that is under way after a second.
func readFor(ctx context.Context, b *bench, source any, d time.Duration) (messages, n int, took time.Duration, err error) {
	var src reads
	k := handlerKind{dial: func(ctx context.Context, socket string) (platform, error) {
		s, err := dataplane.DialSource(ctx, socket)
		src = reads{s}
		return src, err
	}}
	l, err := k.serve(ctx, b.dir, source)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() {
		if closing := l.close(); err == nil {
			err = closing
		}
	}()
	var began, last time.Time
	for start := time.Now(); began.IsZero() || time.Since(began) < d; {
		msgs, err := src.Read(ctx, inFlight, time.Second)
		if err != nil {
			return 0, 0, 0, err
		}
		offsets := make([]dataplane.Offset, len(msgs))
		for i := range msgs {
			offsets[i] = msgs[i].Offset
		}
		if err := src.Ack(ctx, offsets); err != nil {
			return 0, 0, 0, err
		}
		switch last = time.Now(); {
		case !began.IsZero():
			messages, n = messages+len(msgs), n+1
		case time.Since(start) > time.Second:
			began = last
		}
	}
	return messages, n, last.Sub(began), nil
}
