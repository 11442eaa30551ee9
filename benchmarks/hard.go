package main

import (
	"context"
	"errors"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

var hard = section{
	key: "hard", title: "Hard limits",
	shows: "Pools as above, with and without `hard: true`, at the same time. A hard limit grants at most max tokens in any window of `per`. Its " +
		"rate, `Limit.Rate`, is (max + 1 - burst) / 1.0833 per `per`, here with the default burst. Grants and that rate as fractions of max, " +
		"and the most grants in any window of one second.",
	measure: measureHard,
}

func measureHard(ctx context.Context, b *bench) (_ []table, err error) {
	redis, nats, stop, err := b.bothBackends(ctx, consensus.MinLease)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	var plains, hards []*poolRun
	for _, be := range []*backend{redis, nats} {
		for _, tokens := range []int{50, 1_000} {
			plains = append(plains, &poolRun{backend: be, limit: throttle.Limit{Max: tokens}})
			hards = append(hards, &poolRun{backend: be, limit: throttle.Limit{Max: tokens, Hard: true}})
		}
	}
	if err := b.poolsAtOnce(ctx, append(plains, hards...)); err != nil {
		return nil, err
	}
	t := table{head: []string{"store", "limit per second", "burst", "plain", "largest second", "hard", "`Limit.Rate`", "largest second"}}
	for i, r := range hards {
		t.rows = append(t.rows, r.hardRow(plains[i]))
	}
	return []table{t}, nil
}

// hardRow is a pool with a hard limit beside one without.
func (r *poolRun) hardRow(beside *poolRun) row {
	rate := r.limit.Rate() / float64(r.limit.Max) * r.limit.Per.Seconds()
	most := int(float64(r.limit.Max) * time.Second.Seconds() / r.limit.Per.Seconds())
	return judged(r.use() >= 0.99*rate && r.granted <= r.limited*rate+float64(r.limit.Burst) && r.window <= most,
		"0.99 to 1.00 of `Limit.Rate` and burst once; second at most the limit",
		r.backend.name, count(r.limit.Max), count(r.limit.Burst), fraction(beside.use()), count(beside.window),
		fraction(r.use()), fraction(rate), count(r.window))
}
