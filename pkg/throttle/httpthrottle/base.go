package httpthrottle

import (
	"net/http"
	"sync"
	"time"
)

const (
	// quiet is how long an HTTP/2 connection may be silent before it is pinged.
	quiet = 10 * time.Second
	// pingTime is how long it has to answer.
	pingTime = 5 * time.Second
)

// NewBase returns a new transport for [NewTransport], like http.DefaultTransport. It notices when an HTTP/2 connection is dead without having
// ended, as after a change of the network. A connection on which nothing came for 10 s is pinged, and closed if it stays silent for another
// 5 s. Its calls then fail, and the next ones have a new connection. Without this, as with http.DefaultTransport, all calls go into the
// dead connection, and are lost, until the kernel gives it up after a quarter of an hour. Over HTTP/1.1 each lost call is the end of its
// connection.
//
// A transport of the user's own gets the same by its field HTTP2, with times of [PingTime]. Where http.DefaultTransport is no
// *http.Transport, the new one is a plain one.
func NewBase() *http.Transport {
	base := &http.Transport{}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		base = t.Clone()
	}
	if base.HTTP2 == nil {
		base.HTTP2 = &http.HTTP2Config{}
	}
	base.HTTP2.SendPingTimeout, base.HTTP2.PingTimeout = quiet, pingTime
	return base
}

// The least and the longest PingTime.
const (
	leastPing   = time.Second // less would end good connections over a slow network
	longestPing = 15 * time.Second
)

// PingTime returns a good http.HTTP2Config.SendPingTimeout and PingTimeout for calls with a timeout: a quarter of it, 1 s to 15 s; 15 s
// without a timeout. Of timeouts of 4 s and more both together take at most half, so that a silently dead connection is noticed before the
// first call on it has ended, and the next one has another.
func PingTime(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return longestPing
	}
	return min(max(timeout/4, leastPing), longestPing)
}

// sharedBase returns the base of transports without one: one for each *http.Transport that http.DefaultTransport has been. Later changes of
// the fields of that transport don't count. Another type in the place of http.DefaultTransport stays.
func sharedBase() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	madeBases.Lock()
	defer madeBases.Unlock()
	if madeBases.of[t] == nil {
		madeBases.of[t] = NewBase()
	}
	return madeBases.of[t]
}

var madeBases = struct {
	sync.Mutex

	of map[*http.Transport]*http.Transport
}{of: map[*http.Transport]*http.Transport{}}
