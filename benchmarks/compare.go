package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// compareAll measures each kind of handler, bare and wrapped, and where the wrapper needs a goroutine, with that alone.
func compareAll(ctx context.Context, b *bench, load load) (table, error) {
	t := table{head: []string{"handler", "bare, messages per second", "with a limit that never binds", "of bare", "±", "passed on only, of bare", "±"}}
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
		of := c.of(wrapped)
		cells := []string{
			k.name, count(int64(median(c.rates[bare]))), count(int64(median(c.rates[wrapped]))), fraction(of),
			fraction(uncertainty(c.rounds[wrapped])), "", "",
		}
		if k.passing != nil {
			cells[5], cells[6] = fraction(c.of(passing)), fraction(uncertainty(c.rounds[passing]))
		}
		t.rows = append(t.rows, judged(of >= 0.98, "at least 0.98", cells...))
	}
	return t, nil
}

// A form of a handler that is compared with the others.
type form int

const (
	bare form = iota
	wrapped
	passing
	forms
)

// A comparison is the throughput of each form in each turn, and the median of its ratio to the bare handler's in each round.
type comparison struct{ rates, rounds [forms][]float64 }

// of returns the median ratio over all turns.
func (c *comparison) of(f form) float64 { return median(ratios(c.rates[f], c.rates[bare])) }

// compare goes through rounds until the ratio is known well enough.
func (k handlerKind) compare(ctx context.Context, b *bench, load load, wrapper any) (c comparison, err error) {
	handlers := map[form]any{bare: k.bare, wrapped: wrapper}
	order := []form{bare, wrapped}
	if k.passing != nil {
		handlers[passing] = k.passing
		order = append(order, passing)
	}
	for range b.times(load.rounds) {
		mirrored := slices.Clone(order)
		slices.Reverse(mirrored)
		if err := k.round(ctx, b, load, handlers, append(mirrored, order...), &c); err != nil {
			return c, err
		}
		if len(c.rounds[wrapped]) >= fewestRounds && uncertainty(c.rounds[wrapped]) <= preciseBy {
			break
		}
		order = append(order[1:], order[0]) // each form is the first as often as any other
	}
	return c, nil
}

// round measures with servers that it starts in this order, which matters: servers of one and the same handler differ by a
// hundredth, and the first is the fastest.
func (k handlerKind) round(ctx context.Context, b *bench, load load, handlers map[form]any, order []form, c *comparison) (err error) {
	var links []*link
	defer func() {
		for _, l := range links {
			err = errors.Join(err, l.close())
		}
	}()
	for _, f := range order {
		l, err := k.serve(ctx, b.dir, handlers[f])
		if err != nil {
			return err
		}
		links = append(links, l)
	}
	first := len(c.rates[bare])
	for turn := range turnsOfARound + 1 {
		var rates [forms]float64
		for j := range links {
			i := (j + turn) % len(links)
			r, err := links[i].throughput(ctx, load.done, b.long(load.turn))
			if err != nil {
				return err
			}
			rates[order[i]] += r / 2 // each form has two servers
		}
		if turn == 0 {
			continue
		}
		for f := range handlers {
			c.rates[f] = append(c.rates[f], rates[f])
		}
	}
	for f := range handlers {
		c.rounds[f] = append(c.rounds[f], median(ratios(c.rates[f][first:], c.rates[bare][first:])))
	}
	return nil
}
