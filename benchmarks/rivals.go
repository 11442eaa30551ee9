package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// A waiter waits until one call may be made; it may be called from many goroutines.
type waiter func(ctx context.Context) error

// A peer is one way to limit pods.
type peer struct {
	name string
	// open makes a limiter for each pod.
	open func(ctx context.Context, e *peerEnv) (peerOpened, error)
}

// A peerOpened is the limiters of the pods of a peer.
type peerOpened struct {
	pods []waiter
	// kill ends what the limiter of a pod does, as a kill of the process would. nil: it does nothing by itself.
	kill func(pod int) error
	// done ends all of them.
	done func() error
}

var peers = []peer{
	{"numathrottle", openOurs},
	{"`x/time/rate` in each pod", divided(openTimeRate)},
	{"`uber-go/ratelimit` in each pod", divided(openUber)},
	{"failsafe-go in each pod", divided(openFailsafe)},
	{"`redis_rate`", shared(openRedisRate)},
	{"throttled", shared(openThrottled)},
	{"a counter in Redis for each second", shared(openCounter)},
}

// divided gives each pod a limiter of its own, with its part of the limit.
func divided(open func(part int) waiter) func(context.Context, *peerEnv) (peerOpened, error) {
	return func(_ context.Context, e *peerEnv) (peerOpened, error) {
		o := peerOpened{done: func() error { return nil }}
		for range peerPods {
			o.pods = append(o.pods, open(e.max/peerPods))
		}
		return o, nil
	}
}

func openTimeRate(part int) waiter {
	return rate.NewLimiter(rate.Limit(part), part/10).Wait
}

// It has a slack of ten calls, by default.
func openUber(part int) waiter {
	limiter := ratelimit.New(part)
	return func(ctx context.Context) error {
		limiter.Take()
		return ctx.Err()
	}
}

func openFailsafe(part int) waiter {
	return ratelimiter.NewSmooth[any](uint(part), time.Second).AcquirePermit
}

// shared gives each pod a connection to the one counter of all.
func shared(open func(client redis.UniversalClient, e *peerEnv) (waiter, error)) func(context.Context, *peerEnv) (peerOpened, error) {
	return func(_ context.Context, e *peerEnv) (o peerOpened, err error) {
		var clients []redis.UniversalClient
		o.done = func() error {
			var errs []error
			for _, client := range clients {
				errs = append(errs, client.Close())
			}
			return errors.Join(errs...)
		}
		for range peerPods {
			client := e.connect()
			clients = append(clients, client)
			wait, err := open(client, e)
			if err != nil {
				return peerOpened{}, errors.Join(err, o.done())
			}
			o.pods = append(o.pods, wait)
		}
		return o, nil
	}
}

func openRedisRate(client redis.UniversalClient, e *peerEnv) (waiter, error) {
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: e.max, Burst: e.max / 10, Period: time.Second}
	return byAsking(func(ctx context.Context) (time.Duration, error) {
		res, err := limiter.Allow(ctx, e.name, limit)
		if err != nil || res.Allowed > 0 {
			return 0, err
		}
		return max(res.RetryAfter, shortest), nil
	}), nil
}

func openThrottled(client redis.UniversalClient, e *peerEnv) (waiter, error) {
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(e.max), MaxBurst: e.max/10 - 1})
	if err != nil {
		return nil, err
	}
	// It compares and sets, and by default gives up after ten attempts.
	limiter.SetMaxCASAttemptsLimit(1000)
	return byAsking(func(ctx context.Context) (time.Duration, error) {
		limited, res, err := limiter.RateLimitCtx(ctx, e.name, 1)
		if err != nil || !limited {
			return 0, err
		}
		return max(res.RetryAfter, shortest), nil
	}), nil
}

// openCounter counts the calls of each second of the wall clock, as many do by hand.
func openCounter(client redis.UniversalClient, e *peerEnv) (waiter, error) {
	return byAsking(func(ctx context.Context) (time.Duration, error) {
		now := time.Now()
		second := now.Truncate(time.Second)
		key := fmt.Sprint("counter:", e.name, ":", second.Unix())
		n, err := client.Incr(ctx, key).Result()
		if err != nil || n > int64(e.max) {
			return second.Add(time.Second).Sub(now), err
		}
		if n == 1 {
			err = client.Expire(ctx, key, 10*time.Second).Err()
		}
		return 0, err
	}), nil
}

// shortest is the least time between two questions of a caller that was refused.
const shortest = time.Millisecond

// byAsking waits by asking: after a refusal for as long as ask says, and up to a tenth more, so that callers fall out of step.
func byAsking(ask func(ctx context.Context) (again time.Duration, err error)) waiter {
	return func(ctx context.Context) error {
		for {
			again, err := ask(ctx)
			if err != nil || again == 0 {
				return err
			}
			if !pause(ctx, again+rand.N(again/10+1)) {
				return context.Cause(ctx)
			}
		}
	}
}
