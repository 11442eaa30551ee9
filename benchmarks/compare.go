package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A load is what handlers do, and how it is measured.
type load struct {
	work work
	done *atomic.Int64 // counts the messages that are done; nil: those that are answered count
	// There are at most so many rounds, with turns of such a length.
	rounds int
	turn   time.Duration
}

const (
	// turnsOfARound is how many turns the servers of a round have, beside the first, in which they warm up.
	turnsOfARound = 5
	// It is enough when this many rounds say by how much the ratio may be wrong, and it is no more than that.
	fewestRounds = 6
	preciseBy    = 0.004
)

// compareAll measures each kind of handler, bare and wrapped.
func compareAll(ctx context.Context, b *bench, load load) (table, error) {
	t := table{head: []string{"handler", "bare, messages per second", "with a limit that never binds", "of bare", "±"}}
	unlimited, err := throttle.New(throttle.Limit{})
	if err != nil {
		return t, err
	}
	spacious, err := throttle.New(throttle.Limit{Max: 10_000_000})
	if err != nil {
		return t, err
	}
	for _, k := range handlerKinds(load.work) {
		b.sayf("%s", k.name)
		if got := k.wrap(unlimited); fmt.Sprintf("%T", got) != fmt.Sprintf("%T", k.bare) {
			return t, fmt.Errorf("%s: without a limit it is wrapped in a %T", k.name, got)
		}
		c, err := k.compare(ctx, b, load, k.wrap(spacious))
		if err != nil {
			return t, fmt.Errorf("%s: %w", k.name, err)
		}
		of := median(ratios(c.wrapped, c.bare))
		t.rows = append(t.rows, judged(of >= 0.98, "at least 0.98",
			k.name, count(int64(median(c.bare))), count(int64(median(c.wrapped))), fraction(of), fraction(uncertainty(c.rounds))))
	}
	return t, nil
}

// A comparison is the throughput of a bare and a wrapped handler in each turn, and the median ratio of each round.
type comparison struct{ bare, wrapped, rounds []float64 }

// compare goes through rounds until the ratio is known well enough.
func (k handlerKind) compare(ctx context.Context, b *bench, load load, wrapped any) (c comparison, err error) {
	for round := range b.times(load.rounds) {
		order := []bool{false, true, true, false} // of bare and wrapped handlers
		if round%2 == 1 {
			order = []bool{true, false, false, true}
		}
		if err := k.round(ctx, b, load, wrapped, order, &c); err != nil {
			return c, err
		}
		if len(c.rounds) >= fewestRounds && uncertainty(c.rounds) <= preciseBy {
			break
		}
	}
	return c, nil
}

// round measures with servers that it starts in this order, which matters: servers of one and the same handler differ by a
// hundredth, and the first is the fastest.
func (k handlerKind) round(ctx context.Context, b *bench, load load, wrapped any, order []bool, c *comparison) (err error) {
	var links []*link
	defer func() {
		for _, l := range links {
			err = errors.Join(err, l.close())
		}
	}()
	for _, wrap := range order {
		handler := k.bare
		if wrap {
			handler = wrapped
		}
		l, err := k.serve(ctx, b.dir, handler)
		if err != nil {
			return err
		}
		links = append(links, l)
	}
	first := len(c.bare)
	for turn := range turnsOfARound + 1 {
		var bare, wrapped float64
		for j := range links {
			i := (j + turn) % len(links)
			r, err := links[i].throughput(ctx, load.done, b.long(load.turn))
			if err != nil {
				return err
			}
			if order[i] {
				wrapped += r / 2
			} else {
				bare += r / 2
			}
		}
		if turn > 0 {
			c.bare, c.wrapped = append(c.bare, bare), append(c.wrapped, wrapped)
		}
	}
	c.rounds = append(c.rounds, median(ratios(c.wrapped[first:], c.bare[first:])))
	return nil
}
