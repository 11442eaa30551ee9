package redisstore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A serverClock estimates a server's clock. An overloaded server reads requests after their callers have given up. Executing them would
// keep it overloaded, so each request carries its expiry, on the server's clock.
//
// Each answer has the server's time at the step, which came after the request was sent. So the difference between the two is an upper bound
// of the offset, and the lowest bound so far is the estimate. It grows by a thousandth of the time that passes, to follow a server's clock
// that runs faster. If that clock was set ahead, requests expire at once. The reply has the server's time and so shows this, and the
// request is sent once more.
type serverClock struct {
	mu     sync.Mutex
	known  bool
	offset time.Duration // the server's time less the local one, at most
	at     time.Duration // local time of the estimate
}

const (
	aging       = 1000    // see serverClock
	never int64 = maxTime // the expiry of a request without a deadline
)

// observe takes the server's time in microseconds, from the answer to a request sent at a local time.
func (c *serverClock) observe(wall int64, sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	offset := time.Duration(wall)*time.Microsecond - sent
	if !c.known || offset < c.latest(sent) {
		c.known, c.offset, c.at = true, offset, sent
	}
}

// learn takes the server's time from the reply to an expired request if no time was known, or if the server's clock was set. A set clock is
// further ahead than possible, even if the server read the request just now. Otherwise the server was late.
func (c *serverClock) learn(wall int64, sent, received time.Duration) bool {
	c.mu.Lock()
	if c.known && time.Duration(wall)*time.Microsecond-received <= c.latest(received) {
		c.mu.Unlock()
		return false
	}
	c.known = false
	c.mu.Unlock()
	c.observe(wall, sent)
	return true
}

// latest returns the largest possible offset at a local time. c.mu is held.
func (c *serverClock) latest(now time.Duration) time.Duration { return c.offset + (now-c.at)/aging }

// expires returns the server's time in microseconds at a local time, or 0 if unknown.
func (c *serverClock) expires(at time.Duration) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return 0
	}
	return (at + c.latest(at)).Microseconds()
}

// run runs a script that expires; call sends it. From the time until the deadline of ctx, patience returns how long the request may wait
// for the server. Results are the reply, the clock of the server that sent it, and the local time at which the request was sent.
func (s *Store) run(ctx context.Context, pool string, patience func(left time.Duration) time.Duration, call func(expires int64) (any, error),
) (reply any, clock *serverClock, sent time.Duration, err error) {
	clock = &s.clocks[groupOf(pool)]
	for first := true; ; first = false {
		expires, wait := never, time.Duration(0)
		sent = time.Since(s.base)
		if deadline, bounded := ctx.Deadline(); bounded {
			wait = patience(min(time.Until(deadline), s.readTimeout))
			expires = clock.expires(sent + wait)
		}
		reply, err = call(expires)
		if err != nil {
			return nil, nil, 0, err
		}
		wall, expired := parseExpired(reply)
		if !expired {
			return reply, clock, sent, nil
		}
		received := time.Since(s.base)
		if learnt := clock.learn(wall, sent, received); !learnt || !first {
			took := received - sent
			return nil, nil, 0, fmt.Errorf("%w: after %v, with a patience of %v", driver.ErrOverdue, took.Round(time.Millisecond), wait.Round(time.Millisecond))
		}
	}
}

// readTimeoutOf returns how long the client waits for a reply at most.
func readTimeoutOf(client redis.UniversalClient) time.Duration {
	timeout := time.Duration(0)
	switch c := client.(type) {
	case *redis.Client:
		timeout = c.Options().ReadTimeout
	case *redis.ClusterClient:
		timeout = c.Options().ReadTimeout
	}
	if timeout <= 0 { // none, or unknown for another kind of client
		return math.MaxInt64
	}
	return timeout
}

// parseExpired reads the reply to an expired request: the server's time in microseconds.
func parseExpired(reply any) (wall int64, expired bool) {
	parts, _ := reply.([]any)
	if len(parts) != 2 || parts[0] != "expired" {
		return 0, false
	}
	text, _ := parts[1].(string)
	wall, err := strconv.ParseInt(text, 10, 54)
	return wall, err == nil && wall > 0
}
