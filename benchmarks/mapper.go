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

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var mapperSection = section{
	key: "mapper", title: "Wrapped mapper",
	shows: "Messages per second through a numaflow-go map server over its unix socket, 500 in flight, with a handler that returns what it got: " +
		"the worst case for a wrapper, because a handler that does anything takes longer.",
	measure: measureMapper,
}

const inFlight = 500

// echo is the handler: it returns what it got.
type echo struct{}

func (*echo) Map(_ context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()).WithKeys(keys))
}

// A link is a map server and the stream to it.
type link struct {
	stream *dataplane.Map
	stop   context.CancelFunc
	ended  chan error
}

// serve runs a map server in this process, with its socket in a folder below
// dir, and opens a stream to it.
func serve(ctx context.Context, dir string, h mapsdk.Mapper) (*link, error) {
	dir, err := os.MkdirTemp(dir, "map")
	if err != nil {
		return nil, fmt.Errorf("folder for the socket: %w", err)
	}
	socket := filepath.Join(dir, "map.sock")
	server := mapsdk.NewServer(h, mapsdk.WithSockAddr(socket), mapsdk.WithServerInfoFilePath(filepath.Join(dir, "info")))
	serving, stop := context.WithCancel(ctx)
	l := &link{stop: stop, ended: make(chan error, 1)}
	go func() { l.ended <- server.Start(serving) }()
	dialling, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if l.stream, err = dataplane.Dial(dialling, socket, dataplane.WithConcurrency(inFlight)); err != nil {
		stop()
		return nil, errors.Join(err, <-l.ended)
	}
	return l, nil
}

func (l *link) close() error {
	err := l.stream.Close()
	l.stop()
	return errors.Join(err, <-l.ended)
}

// throughput sends messages for d and returns how many were answered per second.
func (l *link) throughput(ctx context.Context, d time.Duration) (float64, error) {
	msg := dataplane.Message{Keys: []string{"key"}, Value: bytes.Repeat([]byte("x"), 64)}
	var stop atomic.Bool
	var answered atomic.Int64
	var running sync.WaitGroup
	failures := make(chan error, inFlight)
	began := time.Now()
	for range inFlight {
		running.Go(func() {
			for !stop.Load() {
				if _, err := l.stream.Do(ctx, msg); err != nil {
					failures <- err
					return
				}
				answered.Add(1)
			}
		})
	}
	<-time.After(d)
	n, took := answered.Load(), time.Since(began)
	stop.Store(true)
	running.Wait()
	select {
	case err := <-failures:
		return 0, err
	default:
		return float64(n) / took.Seconds(), nil
	}
}

func measureMapper(ctx context.Context, b *bench) ([]table, error) {
	bare := &echo{}
	unlimited, err := throttle.New(throttle.Limit{})
	if err != nil {
		return nil, err
	}
	spacious, err := throttle.New(throttle.Limit{Max: 10_000_000})
	if err != nil {
		return nil, err
	}
	variants := []mapsdk.Mapper{bare, mapper.Wrap(bare, unlimited), mapper.Wrap(bare, spacious)}
	rates, err := measureVariants(ctx, b, variants)
	if err != nil {
		return nil, err
	}
	t := table{head: []string{"handler", "messages per second", "of bare"}}
	show := func(i int, name string) []string {
		return []string{name, count(int64(median(rates[i]))), fraction(median(ratios(rates[i], rates[0])))}
	}
	same := variants[1] == variants[0]
	t.rows = append(t.rows,
		plain(show(0, "bare")...),
		judged(same, "the handler itself", show(1, "wrapped, no limit: "+map[bool]string{true: "the handler itself", false: "another handler"}[same])...),
		judged(median(ratios(rates[2], rates[0])) >= 0.98, "at least 0.98", show(2, "wrapped, a limit that never binds")...))
	return []table{t}, nil
}

// measureVariants returns the throughput of each handler in each turn. Every
// handler has two servers, started in the order a b c c b a: servers of one and the
// same handler differ by a hundredth, and the first is the fastest.
func measureVariants(ctx context.Context, b *bench, variants []mapsdk.Mapper) (_ [][]float64, err error) {
	order := make([]int, 0, 2*len(variants))
	for i := range variants {
		order = append(order, i)
	}
	back := slices.Clone(order)
	slices.Reverse(back)
	order = append(order, back...)
	links := make([]*link, 0, len(order))
	defer func() {
		for _, l := range links {
			err = errors.Join(err, l.close())
		}
	}()
	for _, v := range order {
		l, err := serve(ctx, b.dir, variants[v])
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	rates := make([][]float64, len(variants))
	turns := b.times(60)
	for turn := range turns + 1 {
		if turn%10 == 0 {
			b.sayf("turn %d of %d", turn, turns)
		}
		both := make([]float64, len(variants))
		for j := range links {
			i := (j + turn) % len(links)
			r, err := links[i].throughput(ctx, b.long(150*time.Millisecond))
			if err != nil {
				return nil, err
			}
			both[order[i]] += r / 2
		}
		for v, r := range both {
			if turn > 0 { // the first turn warms up
				rates[v] = append(rates[v], r)
			}
		}
	}
	return rates, nil
}
