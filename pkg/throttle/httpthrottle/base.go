package httpthrottle

import (
	"net/http"
	"time"
)

const (
	// quiet is how long an HTTP/2 connection may say nothing before it is asked whether it lives.
	quiet = 10 * time.Second
	// pingTime is how long it has to answer.
	pingTime = 5 * time.Second
)

// NewBase returns a new transport for NewTransport, like http.DefaultTransport, that notices when an HTTP/2 connection is
// dead without having ended, as after a change of the network: one on which nothing came for 10 s is asked, and closed when it says nothing
// for another 5 s. Its calls then fail, and the next ones have a new connection. Without this, as with http.DefaultTransport, all
// calls are sent into the dead connection, and lost, until the kernel gives it up, which takes a quarter of an hour. Over
// HTTP/1.1 each lost call is the end of its connection.
//
// A transport of the user's own is told the same by its field HTTP2. Where http.DefaultTransport is no *http.Transport, the new
// one is a plain one.
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
