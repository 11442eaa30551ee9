package httpproxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A CONNECT draws once, whatever is sent inside, and gives its slot back at its end.
func TestConnect(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hello(w, testkit.Request{}, 0) }))
	defer secure.Close()
	slots, err := throttle.NewInFlight(1)
	require.NoError(t, err)
	p := start(t, Config{Forward: strings.TrimPrefix(secure.URL, "https://"), Limiter: slots, MaxWait: 50 * time.Millisecond, AllowConnect: true})
	require.Contains(t, p.log.String(), "a CONNECT draws once for its connection")
	c := client(t, p)
	for range 3 {
		_, body := through(t, c, secure.URL)
		require.Equal(t, "hello", body)
	}
	require.Equal(t, 1, slots.Status().InUse)
	require.EqualValues(t, 1, slots.Status().Granted)

	_, err = client(t, p).Get(secure.URL)
	require.ErrorContains(t, err, "Too Many Requests")
	c.CloseIdleConnections()
	require.Eventually(t, func() bool { return slots.Status().InUse == 0 }, 5*time.Second, time.Millisecond)
	_, err = c.Get("https://example.com/")
	require.ErrorContains(t, err, "Forbidden")
}

func TestConnectToNobody(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	l := throttletest.New()
	p := start(t, Config{Forward: strings.TrimPrefix(closed.URL, "http://"), Limiter: l, AllowConnect: true})
	_, err := client(t, p).Get("https://" + strings.TrimPrefix(closed.URL, "http://"))
	require.ErrorContains(t, err, "Bad Gateway")
	require.Eventually(t, func() bool { return l.Draws()[0].Settled }, 5*time.Second, time.Millisecond)
	require.Zero(t, l.Draws()[0].Used, "nobody was called")
}
