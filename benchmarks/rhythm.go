package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var rhythmSection = section{
	key: "rhythm", title: "In the platform's rhythm",
	shows: "Every wrapper in two pods of a MonoVertex that share 50 a second and always have messages, with `readBatchSize` 40 and default " +
		"burst. The test reads, forwards and acknowledges like Numaflow's core: one batch after the other, and less than a full chunk of the " +
		"sink waits for `readTimeout`. Granted messages as a fraction of the limit, and in brackets the largest second. The real core idles " +
		"a little longer between batches: 0.72 for a map.",
	measure: measureRhythm,
}

const (
	rhythmLimit, rhythmBatch = 50, 40
	rhythmSettle             = 5 * time.Second
)

// A setting is one of the settings of the vertex.
type setting struct {
	name string
	dataplane.Cadence
}

var settings = []setting{
	{"concurrency 40", dataplane.Cadence{ReadBatchSize: rhythmBatch}},
	{"concurrency 160", dataplane.Cadence{ReadBatchSize: rhythmBatch, Concurrency: 4 * rhythmBatch}},
	{"read-ahead, concurrency 160", dataplane.Cadence{ReadBatchSize: rhythmBatch, Concurrency: 4 * rhythmBatch, ReadAhead: true}},
	{"`readTimeout: 100ms`", dataplane.Cadence{ReadBatchSize: rhythmBatch, ReadTimeout: 100 * time.Millisecond}},
	{"`streaming`, concurrency 160", dataplane.Cadence{ReadBatchSize: rhythmBatch, Concurrency: 4 * rhythmBatch, Streaming: true}},
}

// A seat puts a handler at a socket into a vertex.
type seat func(ctx context.Context, socket string, v *dataplane.Vertex) (aborter, error)

type aborter interface{ Abort() }

var seats = map[string]seat{
	"map": func(ctx context.Context, socket string, v *dataplane.Vertex) (aborter, error) {
		m, err := dataplane.Dial(ctx, socket)
		v.Map = m.Do
		return m, err
	},
	"batch map": func(ctx context.Context, socket string, v *dataplane.Vertex) (aborter, error) {
		m, err := dataplane.DialBatchMap(ctx, socket)
		v.BatchMap = m.Do
		return m, err
	},
	"stream map": func(ctx context.Context, socket string, v *dataplane.Vertex) (aborter, error) {
		m, err := dataplane.DialMapStream(ctx, socket)
		v.Map = m.Do
		return m, err
	},
	"transformer": func(ctx context.Context, socket string, v *dataplane.Vertex) (aborter, error) {
		m, err := dataplane.DialTransform(ctx, socket)
		v.Transform = m.Do
		return m, err
	},
	"sink": func(ctx context.Context, socket string, v *dataplane.Vertex) (aborter, error) {
		k, err := dataplane.DialSink(ctx, socket)
		v.Sink = (&dataplane.SinkWriter{Main: k}).Write
		return k, err
	},
	"source": func(ctx context.Context, socket string, v *dataplane.Vertex) (aborter, error) {
		s, err := dataplane.DialSource(ctx, socket)
		v.Source = s
		return s, err
	},
}

// A rhythmRun is one kind of handler with one setting.
type rhythmRun struct {
	kind    string
	setting setting
	began   time.Time
	mu      sync.Mutex
	at      []time.Duration // that the handlers got a message
}

func (r *rhythmRun) note(context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Since(r.began))
}

// pod runs one pod until ctx ends.
func (r *rhythmRun) pod(ctx context.Context, dir string) (err error) {
	half, err := throttle.Replicas(2)
	if err != nil {
		return err
	}
	l, err := throttle.New(throttle.Limit{Max: rhythmLimit}, throttle.WithSharer(half))
	if err != nil {
		return err
	}
	var handler any
	for _, k := range handlerKinds(r.note) {
		if k.name == r.kind {
			handler = k.wrap(l)
		}
	}
	if dir, err = os.MkdirTemp(dir, "r"); err != nil {
		return fmt.Errorf("folder for the socket: %w", err)
	}
	socket := filepath.Join(dir, "h.sock")
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- sdkserver.New(handler, socket, filepath.Join(dir, "info")).Start(serving) }()
	v := &dataplane.Vertex{Cadence: r.setting.Cadence, Message: message()}
	conn, err := seats[r.kind](ctx, socket, v)
	if err == nil {
		err = v.Run(ctx)
		conn.Abort()
	}
	err = errors.Join(err, l.Close()) // whoever waits for tokens goes
	stop()
	return errors.Join(err, <-served)
}

func measureRhythm(ctx context.Context, b *bench) ([]table, error) {
	length := b.long(60 * time.Second)
	ctx, cancel := context.WithTimeout(ctx, rhythmSettle+length+time.Second)
	defer cancel()
	kinds := []string{"map", "batch map", "stream map", "sink", "transformer", "source"}
	var runs []*rhythmRun
	var pods sync.WaitGroup
	failures := make(chan error, 2*len(kinds)*len(settings))
	for _, kind := range kinds {
		for _, s := range settings {
			r := &rhythmRun{kind: kind, setting: s, began: time.Now()}
			runs = append(runs, r)
			for range 2 {
				pods.Go(func() { failures <- r.pod(ctx, b.dir) })
			}
		}
	}
	b.sayf("%d vertices at once, %s", len(runs), rhythmSettle+length)
	pods.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return nil, err
		}
	}
	t := table{head: []string{"handler"}}
	for _, s := range settings {
		t.head = append(t.head, s.name)
	}
	for i, kind := range kinds {
		cells := []string{kind}
		least := 1.0
		for _, r := range runs[i*len(settings) : (i+1)*len(settings)] {
			use := float64(between(r.at, rhythmSettle, rhythmSettle+length)) / (rhythmLimit * length.Seconds())
			least = min(least, use)
			cells = append(cells, fmt.Sprintf("%.3f (%d)", use, worstSecond(r.at)))
		}
		line := plain(cells...)
		if kind == "source" {
			line = judged(least >= 0.97, "at least 0.97", cells...)
		}
		t.rows = append(t.rows, line)
	}
	return []table{t}, nil
}
