package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var handlerSection = section{
	key: "handlers", title: "Wrapped handlers",
	shows:   "Messages per second through a numaflow-go server over its unix socket, 500 in flight or in a batch.",
	measure: measureHandlers,
}

const inFlight = 500

// A handlerKind is one kind of handler: without a wrapper, how it is wrapped, and how
// the platform talks to it.
type handlerKind struct {
	name    string
	bare    any
	passing any // bare behind a goroutine that only passes messages on; nil where no wrapper needs one
	wrap    func(l throttle.Limiter) any
	dial    func(ctx context.Context, socket string) (platform, error)
}

// A platform is the platform's side of one handler: work sends it messages until
// stop, and counts those that were answered.
type platform interface {
	work(ctx context.Context, stop *atomic.Bool, answered *atomic.Int64) error
	Close() error
}

// handlerKinds returns all kinds; each handler does work for each message.
func handlerKinds(work work) []handlerKind {
	m, batch, stream, transform := echo{work}, batchEcho{work}, streamEcho{work}, transformEcho{work}
	sink, source := blackhole{work}, &spring{work: work}
	return []handlerKind{
		{"map", m, nil, func(l throttle.Limiter) any { return mapper.Wrap(m, l) }, each(dataplane.Dial)},
		{
			"batch map",
			batch,
			passingBatch{batch},
			func(l throttle.Limiter) any { return mapper.WrapBatch(batch, l) },
			batches(dataplane.DialBatchMap),
		},
		{
			"stream map",
			stream,
			passingStream{stream},
			func(l throttle.Limiter) any { return mapper.WrapStream(stream, l) },
			each(dataplane.DialMapStream),
		},
		{
			"stream map, `Direct`",
			stream,
			nil,
			func(l throttle.Limiter) any { return mapper.WrapStream(stream, l, mapper.Direct()) },
			each(dataplane.DialMapStream),
		},
		{"transformer", transform, nil, func(l throttle.Limiter) any { return sourcer.WrapTransformer(transform, l) }, each(dataplane.DialTransform)},
		{"sink", sink, passingSink{sink}, func(l throttle.Limiter) any { return sinker.Wrap(sink, l) }, batches(dataplane.DialSink)},
		{"source", source, nil, func(l throttle.Limiter) any { return sourcer.Wrap(source, l) }, readAll},
	}
}

// A stream is what the dataplane has for a kind that takes In and answers with Out.
type stream[In, Out any] interface {
	Do(ctx context.Context, in In) (Out, error)
	Close() error
}

type dialler[S any] func(ctx context.Context, socket string, opts ...dataplane.Option) (S, error)

func each[S stream[dataplane.Message, Out], Out any](dial dialler[S]) func(context.Context, string) (platform, error) {
	return func(ctx context.Context, socket string) (platform, error) {
		s, err := dial(ctx, socket)
		return one{s, func(ctx context.Context, m dataplane.Message) error {
			_, err := s.Do(ctx, m)
			return err
		}}, err
	}
}

func batches[S stream[[]dataplane.Message, Out], Out any](dial dialler[S]) func(context.Context, string) (platform, error) {
	return func(ctx context.Context, socket string) (platform, error) {
		s, err := dial(ctx, socket)
		return many{s, func(ctx context.Context, m []dataplane.Message) error {
			_, err := s.Do(ctx, m)
			return err
		}}, err
	}
}

func readAll(ctx context.Context, socket string) (platform, error) {
	s, err := dataplane.DialSource(ctx, socket)
	return reads{s}, err
}

// one is a handler that gets one message at a time, many of them beside each other.
type one struct {
	closer interface{ Close() error }
	do     func(ctx context.Context, m dataplane.Message) error
}

func (o one) Close() error { return o.closer.Close() }

func (o one) work(ctx context.Context, stop *atomic.Bool, answered *atomic.Int64) error {
	var running sync.WaitGroup
	failures := make(chan error, inFlight)
	msg := message()
	for range inFlight {
		running.Go(func() {
			for !stop.Load() {
				if err := o.do(ctx, msg); err != nil {
					failures <- err
					return
				}
				answered.Add(1)
			}
		})
	}
	running.Wait()
	close(failures)
	return <-failures
}

// many is a handler that gets batches.
type many struct {
	closer interface{ Close() error }
	do     func(ctx context.Context, m []dataplane.Message) error
}

func (m many) Close() error { return m.closer.Close() }

func (m many) work(ctx context.Context, stop *atomic.Bool, answered *atomic.Int64) error {
	batch := slices.Repeat([]dataplane.Message{message()}, inFlight)
	for !stop.Load() {
		if err := m.do(ctx, batch); err != nil {
			return err
		}
		answered.Add(inFlight)
	}
	return nil
}

// reads is a source, whose messages are acknowledged as they come.
type reads struct{ *dataplane.Source }

func (r reads) work(ctx context.Context, stop *atomic.Bool, answered *atomic.Int64) error {
	for !stop.Load() {
		msgs, err := r.Read(ctx, inFlight, time.Second)
		if err != nil {
			return err
		}
		offsets := make([]dataplane.Offset, len(msgs))
		for i := range msgs {
			offsets[i] = msgs[i].Offset
		}
		if err := r.Ack(ctx, offsets); err != nil {
			return err
		}
		answered.Add(int64(len(msgs)))
	}
	return nil
}

func message() dataplane.Message {
	return dataplane.Message{Keys: []string{"key"}, Value: bytes.Repeat([]byte("x"), 64)}
}

// A link is a server and the platform's connection to it.
type link struct {
	platform

	stop  context.CancelFunc
	ended chan error
}

// serve runs a server for a handler in this process, with its socket in a folder
// below dir, and connects to it.
func (k handlerKind) serve(ctx context.Context, dir string, handler any) (*link, error) {
	dir, err := os.MkdirTemp(dir, "h")
	if err != nil {
		return nil, fmt.Errorf("folder for the socket: %w", err)
	}
	socket := filepath.Join(dir, "h.sock")
	server := sdkserver.New(handler, socket, filepath.Join(dir, "info"))
	serving, stop := context.WithCancel(ctx)
	l := &link{stop: stop, ended: make(chan error, 1)}
	go func() { l.ended <- server.Start(serving) }()
	dialling, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if l.platform, err = k.dial(dialling, socket); err != nil {
		stop()
		return nil, errors.Join(err, <-l.ended)
	}
	return l, nil
}

func (l *link) close() error {
	err := l.Close()
	l.stop()
	return errors.Join(err, <-l.ended)
}

// throughput sends messages for d and returns how many were done per second: by its own count, or answered if there
// is none.
func (l *link) throughput(ctx context.Context, done *atomic.Int64, d time.Duration) (float64, error) {
	var stop atomic.Bool
	var answered atomic.Int64
	if done == nil {
		done = &answered
	}
	ended := make(chan error, 1)
	began, before := time.Now(), done.Load()
	go func() { ended <- l.work(ctx, &stop, &answered) }()
	<-time.After(d)
	n, took := done.Load()-before, time.Since(began)
	stop.Store(true)
	return float64(n) / took.Seconds(), <-ended
}

func measureHandlers(ctx context.Context, b *bench) ([]table, error) {
	idle, err := compareAll(ctx, b, load{rounds: 24, turn: 100 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	idle.caption = "Handlers that do almost nothing: the worst case for a wrapper, which costs up to two microseconds per message. Without a limit " +
		"every wrapper returns the handler itself. Each round starts new servers, bare and wrapped; ± is 1.96 standard errors of the rounds' " +
		"ratios. Passed on only: the bare handler behind a goroutine that only passes messages on, the least that can hold a message back."
	service, err := startService(ctx)
	if err != nil {
		return nil, err
	}
	defer service.close()
	calling, err := compareAll(ctx, b, load{work: service.call, done: &service.called, rounds: 8, turn: 300 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	calling.caption = "Handlers with one HTTP request per message, to a service in the same process."
	if n := service.failed.Load(); n > 0 {
		return nil, fmt.Errorf("%d of %d calls failed", n, service.called.Load())
	}
	return []table{idle, calling}, nil
}
