package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/open"
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/nats" // the demo's store
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A job is what a process is told, in its environment because a store's URL may hold a password.
type job struct {
	ID     string             `json:"id"`
	Pool   string             `json:"pool"`
	Store  string             `json:"store"`
	Offers map[string]float64 `json:"offers"` // calls per second that come to this process, by tag
}

const jobVariable = "NUMATHROTTLE_QUOTA_DEMO_JOB"

// A report is what a process says of itself, as a line of JSON on its standard output: the calls that it has been granted,
// by tag.
type report struct {
	Granted map[string]int64 `json:"granted"`
}

const reportEvery = 200 * time.Millisecond

// work is the whole life of one process.
func work(encoded string, out, logs io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(encoded), &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	th, err := open.Open(ctx, open.Config{
		Limit: limit, Quotas: quotas, Store: j.Store, Pool: j.Pool, ID: j.ID, Lease: lease, OnStoreLoss: open.StoreLossStop,
		Logger: slog.New(slog.NewTextHandler(logs, nil)),
	})
	if err != nil {
		return err
	}
	granted := map[string]*atomic.Int64{}
	for tag, rate := range j.Offers {
		granted[tag] = &atomic.Int64{}
		patience := time.Second
		if tag == "dash" {
			patience /= 5
		}
		go offer(ctx, th.ForTag(tag), rate, patience, granted[tag])
	}
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		r := report{Granted: map[string]int64{}}
		for tag, n := range granted {
			r.Granted[tag] = n.Load()
		}
		if err := json.NewEncoder(out).Encode(r); err != nil {
			break // nobody listens any more
		}
	}
	return th.Close()
}

// offer draws for the calls of one tag as they come, until ctx ends. A call waits as long as its patience lasts, and what comes when a
// second's worth of calls wait already is turned away.
func offer(ctx context.Context, l throttle.Limiter, rate float64, patience time.Duration, granted *atomic.Int64) {
	const step = 10 * time.Millisecond
	waiting := make(chan struct{}, int(rate)+1)
	tick := time.NewTicker(step)
	defer tick.Stop()
	for due := 0.0; ctx.Err() == nil; <-tick.C {
		for due += rate * step.Seconds(); due >= 1; due-- {
			select {
			case waiting <- struct{}{}:
			default:
				continue
			}
			go func() {
				defer func() { <-waiting }()
				call, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				if _, err := l.Acquire(call, 1); err == nil {
					granted.Add(1)
				}
			}()
		}
	}
}
