package natsstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A line is a Store on one of its connections.
type line struct {
	*Store

	nc *nats.Conn
}

const (
	// stranded is how long the server may fail to serve before a second connection is opened.
	stranded = time.Second
	// spareFor is how long the first connection must serve before the second is closed again.
	spareFor = 30 * time.Second
)

// lines are the connections of a Store: the caller's and, while its server does not serve, a spare connection to another server. A server
// cut off from its cluster still answers pings, so the connection stays, but it knows no leader. During an election no server serves, so
// the right server looks like the wrong one. With a connection to each of two servers, one of them is right if a single server has failed.
type lines struct {
	mu          sync.Mutex
	failing     time.Time // since when the caller's connection has not served; zero: it serves
	served      time.Time // since when it has served; zero: it does not
	forced      time.Time // when it last was forced to another server
	spare       *nats.Conn
	maintaining bool // maintain is under way
	closed      bool
}

// pick returns the line to try a step on: the caller's connection or, while that does not serve, the first of two to answer.
func (c *lines) pick(ctx context.Context, s *Store) line {
	first := line{s, s.nc}
	spare := c.standIn(s)
	if spare == nil {
		return first
	}
	asking, enough := context.WithCancel(ctx)
	defer enough()
	answered := make(chan line, 1)
	ask := func(l line) {
		if _, err := l.info(asking); err == nil || is(err, codeStreamNotFound) {
			select {
			case answered <- l:
			default:
			}
		}
	}
	// Requests sent while there is no leader are never answered, so repeat them.
	again := time.NewTicker(callTimeout / 3)
	defer again.Stop()
	for until := lastCall(ctx); time.Now().Before(until); {
		go ask(first)
		go ask(line{s, spare})
		select {
		case l := <-answered:
			return l
		case <-again.C:
		case <-ctx.Done():
		}
	}
	return first
}

// lastCall returns until when to look for a line, so that there is time left to use it.
func lastCall(ctx context.Context) time.Time {
	if deadline, ok := ctx.Deadline(); ok {
		return deadline.Add(-callTimeout / 3)
	}
	return time.Now().Add(callTimeout)
}

// standIn returns the spare connection if it may be needed. It ensures that there is one, to another server than the first connection's.
func (c *lines) standIn(s *Store) *nats.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing.IsZero() || time.Since(c.failing) < stranded || c.closed {
		return nil
	}
	// In the background: a client that looks for a server does not report anything meanwhile.
	if !c.maintaining {
		c.maintaining = true
		go c.maintain(s, c.spare)
	}
	return c.spare
}

// maintain opens the spare connection if there is another server, or moves it away from the server of the first connection.
func (c *lines) maintain(s *Store, spare *nats.Conn) {
	first := s.nc
	switch {
	case spare == nil && len(first.Servers()) > 1:
		c.open(s.opts.connect, spareOptions(first, s.connOpts))
	case spare != nil && spare.IsConnected() && spare.ConnectedServerId() == first.ConnectedServerId(): // which may have several URLs
		_ = spare.ForceReconnect() // fails only on a closed connection
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maintaining = false
}

// spareOptions returns the options o of a connection, changed to try its other servers first. A client that has lost them may know only the
// URL of its own server and one that leads to any, such as that of a service.
func spareOptions(first *nats.Conn, o nats.Options) nats.Options {
	withLogin := func(url string) bool { return strings.Contains(url, "@") }
	if !withLogin(o.Url) && !slices.ContainsFunc(o.Servers, withLogin) { // Servers leaves the logins out
		here := first.ConnectedUrl()
		urls := first.Servers()
		rand.Shuffle(len(urls), func(i, k int) { urls[i], urls[k] = urls[k], urls[i] })
		if i := slices.Index(urls, here); i >= 0 {
			urls = append(slices.Delete(urls, i, i+1), here)
		}
		o.Url, o.Servers, o.NoRandomize = "", urls, true
	}
	o.RetryOnFailedConnect, o.AllowReconnect, o.MaxReconnect = true, true, -1
	o.ClosedCB, o.DisconnectedErrCB, o.ReconnectedCB, o.ConnectedCB, o.DiscoveredServersCB = nil, nil, nil, nil, nil
	return o
}

func (c *lines) open(connect func(nats.Options) (*nats.Conn, error), o nats.Options) {
	nc, err := connect(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		return // the next step tries again
	}
	if c.closed {
		nc.Close()
		return
	}
	c.spare = nc
}

// outcome records the outcome of a step on a line.
func (c *lines) outcome(l line, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	serves := err == nil || errors.Is(err, driver.ErrWrongAnswer) || errors.Is(err, driver.ErrContention) && !errors.Is(err, errBehind.error)
	switch {
	case serves && l.nc == l.Store.nc:
		if c.failing = (time.Time{}); c.served.IsZero() {
			c.served = now
		}
		if c.spare != nil && now.Sub(c.served) >= spareFor {
			go c.spare.Close() // it may be looking for a server
			c.spare = nil
		}
	case serves: // the spare connection serves, the first one does not
		if !c.failing.IsZero() && now.Sub(c.forced) >= 2*stranded {
			c.forced = now
			go func() { _ = l.Store.nc.ForceReconnect() }()
		}
	case l.nc == l.Store.nc && !errors.Is(err, context.Canceled):
		c.served = time.Time{}
		if c.failing.IsZero() {
			c.failing = now
		}
	}
}

func (c *lines) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.spare != nil {
		c.spare.Close()
		c.spare = nil
	}
}
