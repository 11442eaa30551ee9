package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

const (
	processors = 4
	// longest bounds the duration of the whole demo.
	longest = 90 * time.Second
)

// A demo is one run: the processes, the service, and the observations.
type demo struct {
	out       io.Writer
	dir       string
	job       job
	svc       *service
	feed      *feeder
	stopInput context.CancelFunc
	began     time.Time
	late      *stage.Lateness

	procs   []*process
	phase   string
	events  []event
	steady  []phase
	ended   error // of the processes' end
	tableAt time.Time
	granted map[string]int64 // as of the last row of the table
}

// An event is a fault from which the pool must recover, and the time of the recovery.
type event struct {
	name  string
	took  time.Duration
	limit time.Duration // 0: measured and shown, not judged
}

// A phase is a time of steady membership, and its use of the limit.
type phase struct {
	name  string
	use   float64 // of the limit
	calls int
	took  time.Duration
}

// play runs the acts in order. Each is measured after its recovery.
func (d *demo) play(ctx context.Context) error {
	removal := wire.Removal(lease) + 2*time.Second
	for i := range processors {
		if err := d.start(ctx, fmt.Sprintf("p%d", i+1)); err != nil {
			return err
		}
	}
	whole := func() bool { return d.shares() >= 0.97 }
	fair := func(p *process, n int) func() bool {
		return func() bool { return p.report().Share >= 0.95/float64(n) }
	}
	acts := []struct {
		name    string
		do      func() error
		healed  func() bool
		limit   time.Duration
		measure time.Duration
	}{
		{"cold start", nil, func() bool { return whole() && d.agreed(processors) }, 0, 8 * time.Second},
		{
			"one joins", func() error { return d.start(ctx, "p5") },
			func() bool { return fair(d.procs[4], processors+1)() && d.agreed(processors+1) }, removal, 5 * time.Second,
		},
		{"one is killed", func() error { return d.procs[1].kill() }, whole, removal, 5 * time.Second},
		{
			"one is stopped", func() error { return d.procs[2].halt() },
			whole, removal, 3 * time.Second,
		},
		{
			"it goes on", func() error { return d.procs[2].resume() },
			func() bool { return fair(d.procs[2], processors)() && whole() }, removal, 5 * time.Second,
		},
		{
			"all input to one", func() error { d.onlyFeed(d.procs[0]); return nil },
			func() bool { return d.procs[0].report().Share >= 0.95 }, removal, 5 * time.Second,
		},
	}
	for _, a := range acts {
		d.phase = a.name
		began := time.Now()
		if a.do != nil {
			if err := a.do(); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
		}
		if err := d.until(ctx, a.healed, 20*time.Second); err != nil {
			return fmt.Errorf("%s: %w (shares in use: %.3f)", a.name, err, d.shares())
		}
		d.events = append(d.events, event{a.name, time.Since(began), a.limit})
		if err := d.measure(ctx, a.name, a.measure); err != nil {
			return err
		}
	}
	return d.finish()
}

// start adds a mapper process and feeds it.
func (d *demo) start(ctx context.Context, id string) error {
	j := d.job
	j.ID = id
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	p, err := startProcess(ctx, j, d.dir)
	if p != nil {
		d.procs = append(d.procs, p)
	}
	if err != nil {
		return err
	}
	d.feed.serve(p)
	return nil
}

// shares returns the sum of the shares in use.
func (d *demo) shares() (sum float64) {
	for _, p := range d.procs {
		sum += p.report().Share
	}
	return sum
}

// agreed reports whether every processor divides by n.
func (d *demo) agreed(n int) bool {
	for _, p := range d.procs {
		if r := p.report(); !r.Agreed || r.PoolSize != n {
			return false
		}
	}
	return true
}

func (d *demo) onlyFeed(p *process) {
	for _, q := range d.procs {
		q.setFed(q == p)
	}
}

var errNotHealed = errors.New("not healed in time")

// until waits for ok, printing the table in the meantime.
func (d *demo) until(ctx context.Context, ok func() bool, limit time.Duration) error {
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			return errNotHealed
		}
		if err := d.pass(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// measure watches a steady time and records how much of the limit was used.
func (d *demo) measure(ctx context.Context, name string, how time.Duration) error {
	d.phase += ": steady"
	if err := d.pass(ctx, 500*time.Millisecond); err != nil { // calls in flight end
		return err
	}
	from := time.Now()
	for time.Since(from) < how {
		if err := d.pass(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	to := time.Now()
	calls := d.svc.calls(from, to)
	perSecond := float64(calls) / to.Sub(from).Seconds()
	d.steady = append(d.steady, phase{name, perSecond / float64(limit.Max), calls, to.Sub(from)})
	return nil
}

// pass lets time pass and prints a row of the table when one is due.
func (d *demo) pass(ctx context.Context, t time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(t):
	}
	d.row()
	return nil
}

// finish ends the input, waits until every message is answered, and ends the processes cleanly.
func (d *demo) finish() error {
	for _, p := range d.procs {
		p.setFed(true)
	}
	d.stopInput()
	d.feed.pending.Wait()
	for _, p := range d.procs {
		d.ended = errors.Join(d.ended, p.end())
	}
	return nil
}

// killAll ends the remaining processes after a failure.
func (d *demo) killAll() {
	for _, p := range d.procs {
		_ = p.Kill()
	}
}
