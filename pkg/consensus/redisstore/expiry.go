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

// A serverClock estimates a server's clock. An overloaded server gets to requests after their callers have given up.
// Carrying them out would keep it overloaded, so each request says when it expires, on the server's clock.
//
// Each answer tells the server's time at the step, which came after the request was sent. So the difference between the
// two is an upper bound of the offset, and the lowest bound so far is the estimate. It grows by a thousandth of the time
// that passes, to follow a server's clock that runs faster. If that clock was set ahead, requests expire at once. The reply has
// the server's time and so shows that, and the request is sent once more.
type serverClock struct {
	mu     sync.Mutex
	known  bool
	offset time.Duration // the server's time less the local one, at most
	at     time.Duration // local time of the estimate
}

const (
	aging       = 1000    // see serverClock
	never int64 = maxTime // when a request expires whose caller has all the time there is
)

// observe takes the server's time in microseconds, as told in the answer to a request that was sent at a local time.
func (c *serverClock) observe(wall int64, sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	offset := time.Duration(wall)*time.Microsecond - sent
	if !c.known || offset < c.latest(sent) {
		c.known, c.offset, c.at = true, offset, sent
	}
}

// learn takes the server's time from the reply to a request that expired, if nothing was known before, or if the server's clock was
// set: it is further ahead than it can be even if the server has come to the request just now. Else the server was late.
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

// latest is the largest offset that there may be at a local time. c.mu is held.
func (c *serverClock) latest(now time.Duration) time.Duration { return c.offset + (now-c.at)/aging }

// expires returns the server's time in microseconds at a local time, or 0 if nothing is known of it.
func (c *serverClock) expires(at time.Duration) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return 0
	}
	return (at + c.latest(at)).Microseconds()
}

// run runs a script that expires: call sends it. patience is how much of the time until the deadline of ctx the request may
// wait for the server. It returns the reply, and the clock of the server that gave it to a request sent at a local time.
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

// readTimeoutOf is how long the client waits for a reply at most.
func readTimeoutOf(client redis.UniversalClient) time.Duration {
	timeout := time.Duration(0)
	switch c := client.(type) {
	case *redis.Client:
		timeout = c.Options().ReadTimeout
	case *redis.ClusterClient:
		timeout = c.Options().ReadTimeout
	}
	if timeout <= 0 { // none, or that of a client of another kind, which is not known
		return math.MaxInt64
	}
	return timeout
}

// parseExpired reads the reply to a request that has expired: the server's time in microseconds.
func parseExpired(reply any) (wall int64, expired bool) {
	parts, _ := reply.([]any)
	if len(parts) != 2 || parts[0] != "expired" {
		return 0, false
	}
	text, _ := parts[1].(string)
	wall, err := strconv.ParseInt(text, 10, 54)
	return wall, err == nil && wall > 0
}
