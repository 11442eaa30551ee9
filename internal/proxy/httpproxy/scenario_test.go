package httpproxy

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/world/calls"
)

// TestScenarios plays the scenarios in testdata: calls through a proxy to a service that follows a script. Package calls has their language,
// with one more command:
//
//	proxy [NAME] [limit=NAME] [token=T] [login=URL] [FIELD=V]: a client of a proxy with these fields of Config. In tag=, and once in cost= and
//	  settle=, "_" is a blank. With login it is a forward proxy to the client, as the user of that URL.
func TestScenarios(t *testing.T) {
	calls.Play(t, "testdata/*.txt", func() calls.Commands { return calls.Commands{"proxy": openProxy} })
}

func openProxy(o *calls.Order) string {
	token, login := o.Value("token"), o.Value("login")
	c := Config{Limiter: o.Limiter(), Logger: o.Logger()}
	c.Limits.Pool.Store, c.Limits.Pool.Pool, c.Limits.Pool.ID = "memory://"+rand.Text(), "p", "i"
	c.Serving.HostNames = "service.test"
	o.Fill(&c, nil)
	c.Cost, c.Settle, c.Tag = strings.Replace(c.Cost, "_", " ", 1), strings.Replace(c.Settle, "_", " ", 1), strings.ReplaceAll(c.Tag, "_", " ")
	if c.Upstream == "" && c.Forward == "" {
		c.Upstream = "http://service.test"
	}
	require.NoError(o.T, c.Validate(), o.Line)
	c = c.withDefaults()
	l, err := c.open(o.T.Context())
	require.NoError(o.T, err, o.Line)
	h := newHandler(&c, l, token, nil)
	h.reverse.Transport = h.transport(o.Service())
	o.T.Cleanup(func() {
		h.close()
		require.NoError(o.T, l.close())
	})
	tr := o.Serve(&http.Server{
		Handler: h, ReadHeaderTimeout: time.Minute, BaseContext: listen.BaseContext(func(net.Listener) context.Context { return h.ended }),
	})
	if login != "" {
		user, err := url.Parse(login)
		require.NoError(o.T, err, o.Line)
		tr.Proxy = http.ProxyURL(user)
	}
	o.Client(tr)
	return ""
}
