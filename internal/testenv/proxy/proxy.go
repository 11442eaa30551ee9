package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// dialTimeout bounds a connection to the target, which is on this machine: it answers at once, or holds Close up for so long.
const dialTimeout = 5 * time.Second

// A Proxy forwards TCP connections to one target.
type Proxy struct {
	target string
	addr   string
	hold   net.PacketConn // reserves the port

	running sync.WaitGroup // every goroutine of the proxy

	mu       sync.Mutex
	listener net.Listener // nil while cut
	ways     [2]way
	changed  chan struct{} // closed and replaced when ways change
	links    map[*link]struct{}
	closed   bool
}

// A direction is one of the two ways through a proxy.
type direction int

const (
	up   direction = iota // to the target
	down                  // from it
)

// A way is what happens to the bytes of one direction.
type way struct {
	delay   time.Duration
	swallow bool
}

// Start returns a proxy that listens on a free port and forwards to target, a host and port. The target need not be
// there yet: while it is not, connections are accepted and reset. The context bounds the start only.
func Start(ctx context.Context, target string) (*Proxy, error) {
	hold, listener, err := Reserve(ctx)
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", target, err)
	}
	p := &Proxy{
		target: target, addr: listener.Addr().String(), hold: hold,
		changed: make(chan struct{}), links: make(map[*link]struct{}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve(listener)
	return p, nil
}

// Addr returns the host and port to connect to. They stay the same until Close.
func (p *Proxy) Addr() string { return p.addr }

// Connections returns how many connections are open.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Delay forwards every byte that much after it came, in each direction. 0 is no delay. The order stays.
func (p *Proxy) Delay(upward, downward time.Duration) {
	p.change(func() { p.ways[up].delay, p.ways[down].delay = upward, downward })
}

// Swallow forwards nothing in the directions that are true, neither bytes nor the end of a connection, and continues to accept. As in a
// network that drops packets, data sent in the meantime arrives late, after Heal or another Swallow: TCP sends it again. To have it lost,
// call Cut before Heal.
func (p *Proxy) Swallow(upward, downward bool) {
	p.change(func() { p.ways[up].swallow, p.ways[down].swallow = upward, downward })
}

// Forget makes the open connections silent for good, as a firewall does that has forgotten them, and returns how many. They stay open. Later
// ones are forwarded.
func (p *Proxy) Forget() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if !l.forgotten.Swap(true) {
			n++
		}
	}
	return n
}

// Cut resets all connections, drops all data under way, and refuses new connections until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	listener, links := p.cutLocked()
	p.mu.Unlock()
	end(listener, links)
}

func (p *Proxy) cutLocked() (net.Listener, []*link) {
	listener := p.listener
	p.listener = nil
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return listener, links
}

func end(listener net.Listener, links []*link) {
	if listener != nil {
		listener.Close()
	}
	for _, l := range links {
		l.end(true)
	}
}

// Heal ends the effects of Delay, Swallow and Cut. Its error is that of listening again after a Cut.
func (p *Proxy) Heal() error {
	p.change(func() { p.ways = [2]way{} })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", p.addr)
	if err != nil {
		return fmt.Errorf("proxy to %s: %w", p.target, err)
	}
	p.serve(listener)
	return nil
}

// Close resets all connections and ends the proxy. It returns when nothing of it is left.
func (p *Proxy) Close() error {
	p.mu.Lock()
	was := p.closed
	p.closed = true
	listener, links := p.cutLocked()
	p.mu.Unlock()
	end(listener, links)
	p.running.Wait()
	if was {
		return nil
	}
	return p.hold.Close()
}

func (p *Proxy) change(apply func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	apply()
	close(p.changed)
	p.changed = make(chan struct{})
}

// serve accepts connections until the listener is closed. p.mu is held.
func (p *Proxy) serve(listener net.Listener) {
	p.listener = listener
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			switch {
			case err == nil:
				p.accept(listener, conn)
			case errors.Is(err, net.ErrClosed):
				return
			default: // such as too many open files; it may pass
				<-time.After(10 * time.Millisecond)
			}
		}
	})
}

// accept forwards a connection, unless the listener that it came by has been closed meanwhile.
func (p *Proxy) accept(listener net.Listener, conn net.Conn) {
	l := newLink(p, conn)
	p.mu.Lock()
	welcome := p.listener == listener
	if welcome {
		p.links[l] = struct{}{}
		p.running.Go(func() { l.run(); p.forget(l) })
	}
	p.mu.Unlock()
	if !welcome {
		l.end(true)
	}
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// await returns true when data of that time may be forwarded, and false if the link has ended before.
func (p *Proxy) await(d direction, came time.Time, ended <-chan struct{}) bool {
	for {
		p.mu.Lock()
		w, changed := p.ways[d], p.changed
		p.mu.Unlock()
		var due <-chan time.Time
		if !w.swallow {
			wait := time.Until(came.Add(w.delay))
			if wait <= 0 {
				return true
			}
			due = time.After(wait)
		}
		select {
		case <-due:
		case <-changed:
		case <-ended:
			return false
		}
	}
}
