package outbound

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, sent := 500, 0
		var log []string
		b := NewBreakers(3, 10*time.Second, 2, func(d string, open bool) { log = append(log, map[bool]string{true: "open ", false: "closed "}[open]+d) })
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
		})
		guarded := b.Guard(base, func(r *http.Request) string { return r.URL.Host },
			func(res *http.Response) (bool, bool) {
				return res.StatusCode >= 500, res.StatusCode != http.StatusTooManyRequests
			})
		call := func(host string) error {
			req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+host, strings.NewReader("x"))
			require.NoError(t, err)
			res, err := guarded.RoundTrip(req)
			require.NoError(t, err)
			defer res.Body.Close()
			return FailureOf(res)
		}
		require.NoError(t, call("a"))
		status = 200
		require.NoError(t, call("a"))
		status = 429
		require.NoError(t, call("a"), "a refusal says nothing about the service")
		status = 500
		for range 3 {
			require.NoError(t, b.Check("a"))
			require.NoError(t, call("a"))
		}
		time.Sleep(4 * time.Second)
		var open *OpenError
		require.ErrorAs(t, b.Check("a"), &open)
		require.Equal(t, 6*time.Second, open.RetryAfter)
		require.ErrorAs(t, call("a"), &open)
		require.NoError(t, b.Check("b"), "another destination")
		require.Equal(t, 6, sent)

		time.Sleep(6*time.Second + 1)
		require.NoError(t, b.Check("a"), "one may try")
		require.NoError(t, call("a"))
		require.ErrorAs(t, b.Check("a"), &open, "it failed")
		time.Sleep(10*time.Second + 1)
		status = 200
		require.NoError(t, call("a"))
		require.NoError(t, b.Check("a"))
		require.Equal(t, []string{"open a", "open a", "closed a"}, log)

		status = 500
		for range 3 { // those beyond the second share one
			require.NoError(t, call("c"))
		}
		require.ErrorAs(t, b.Check("d"), &open)
		require.NoError(t, (*Breakers)(nil).Check("a"))
	})
}
