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

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/nats" // the demo's store
	_ "github.com/numaproj-contrib/numathrottle/pkg/open/redis"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A job is a process's task, passed in its environment because a store's URL may hold a password.
type job struct {
	ID     string             `json:"id"`
	Pool   string             `json:"pool"`
	Store  string             `json:"store"`
	Offers map[string]float64 `json:"offers"` // calls per second at this process, by tag
}

const jobVariable = "NUMATHROTTLE_QUOTA_DEMO_JOB"

// A report is a process's report on itself, a line of JSON on its standard output: its granted tokens by tag, and how often the machine has
// not let it run for longer than stall.
type report struct {
	Granted map[string]int64 `json:"granted"`
	Stalls  int64            `json:"stalls"`
}

// stall is the longest delay by the machine that does not change the rates of a process's tags.
const stall = 100 * time.Millisecond

const reportEvery = 200 * time.Millisecond

// work is the whole life of one process.
func work(encoded string, out, logs io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(encoded), &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	th, err := opening.Open(ctx, opening.Config{
		Limit: limit, Quotas: quotas, Store: j.Store, Pool: j.Pool, ID: j.ID, Lease: lease, OnStoreLoss: opening.StoreLossStop,
		Logger: slog.New(slog.NewTextHandler(logs, nil)),
	})
	if err != nil {
		return err
	}
	granted := map[string]*atomic.Int64{}
	for tag, rate := range j.Offers {
		granted[tag] = &atomic.Int64{}
		calls := caller{rate: rate, cost: 1, patience: time.Second}
		switch tag {
		case "dash":
			calls.patience = 200 * time.Millisecond
		case "elle":
			calls.cost, calls.patience = 20, 10*time.Second
		}
		go calls.offer(ctx, th.ForTag(tag), granted[tag])
	}
	var stalls atomic.Int64
	go countStalls(ctx, &stalls)
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		r := report{Granted: map[string]int64{}, Stalls: stalls.Load()}
		for tag, n := range granted {
			r.Granted[tag] = n.Load()
		}
		if err := json.NewEncoder(out).Encode(r); err != nil {
			break // the reader is gone
		}
	}
	return th.Close()
}

// countStalls counts the ticks of a short period that come late by more than stall, until ctx ends.
func countStalls(ctx context.Context, n *atomic.Int64) {
	tick := time.NewTicker(stall / 10)
	defer tick.Stop()
	for last := time.Now(); ctx.Err() == nil; <-tick.C {
		now := time.Now()
		if now.Sub(last) > stall {
			n.Add(1)
		}
		last = now
	}
}

// A caller makes calls of one tag: rate per second, of cost tokens each. A call waits for at most its patience.
type caller struct {
	rate     float64
	cost     int
	patience time.Duration
}

// offer draws for the calls as they come, until ctx ends. When the maximum of calls wait, it rejects further ones.
func (c caller) offer(ctx context.Context, l throttle.Limiter, granted *atomic.Int64) {
	const step = 10 * time.Millisecond
	waiting := make(chan struct{}, int(c.rate*max(c.patience, time.Second).Seconds())+1)
	tick := time.NewTicker(step)
	defer tick.Stop()
	due, last := 0.0, time.Now()
	for ; ctx.Err() == nil; <-tick.C { // ticks are left out on a busy machine, calls are not
		now := time.Now()
		due += c.rate * now.Sub(last).Seconds()
		for last = now; due >= 1; due-- {
			select {
			case waiting <- struct{}{}:
			default:
				continue
			}
			go func() {
				defer func() { <-waiting }()
				call, cancel := context.WithTimeout(ctx, c.patience)
				defer cancel()
				if _, err := l.Acquire(call, c.cost); err == nil {
					granted.Add(int64(c.cost))
				}
			}()
		}
	}
}
