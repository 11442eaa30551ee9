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

// NewBase returns a new transport for NewTransport, like http.DefaultTransport. It notices when an HTTP/2 connection is dead without having
// ended, as after a change of the network. A connection on which nothing came for 10 s is pinged, and closed if it stays silent for another
// 5 s. Its calls then fail, and the next ones have a new connection. Without this, as with http.DefaultTransport, all calls go into the
// dead connection, and are lost, until the kernel gives it up after a quarter of an hour. Over HTTP/1.1 each lost call is the end of its
// connection.
//
// A transport of the user's own gets the same by its field HTTP2. Where http.DefaultTransport is no *http.Transport, the new one is a plain
// one.
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

// sharedBase returns the base of transports without one. A transport of the user's own in the place of http.DefaultTransport stays.
func sharedBase() http.RoundTripper {
	if _, ok := http.DefaultTransport.(*http.Transport); !ok {
		return http.DefaultTransport
	}
	return madeBase()
}

var madeBase = sync.OnceValue(NewBase)
