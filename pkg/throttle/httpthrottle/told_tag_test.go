package httpthrottle_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// reported is a limiter that notes the outcomes reported to it; its tags have limiters of their own.
type reported struct {
	throttle.Limiter

	times int
	tags  map[string]*reported
}

func (o *reported) RetryAfter(time.Time, string) { o.times++ }

func (o *reported) ForTag(tag string) throttle.Limiter { return o.tags[tag] }

// plain is a limiter that has no tags.
type plain struct{ *throttle.Throttle }

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"30"}}, Body: http.NoBody}, nil
}

// Of a call with a tag the limiter of that tag is told, and nobody where the limiter knows no tags.
func TestTheLimiterOfATagIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := func() *throttle.Throttle {
			th, err := throttle.New(throttle.Limit{Max: 1000})
			require.NoError(t, err)
			t.Cleanup(func() { _ = th.Close() })
			time.Sleep(time.Second)
			return th
		}
		send := func(l throttle.Limiter, tag string) {
			client := &http.Client{Transport: httpthrottle.NewTransport(refusing{}, l,
				httpthrottle.WithMaxAttempts(1), httpthrottle.WithTag(func(*http.Request) string { return tag }))}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.invalid/", http.NoBody)
			require.NoError(t, err)
			res, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
		}
		a := &reported{Limiter: limiter()}
		whole := &reported{Limiter: limiter(), tags: map[string]*reported{"a": a}}
		send(whole, "a")
		require.Equal(t, []int{0, 1}, []int{whole.times, a.times})
		send(whole, "")
		require.Equal(t, []int{1, 1}, []int{whole.times, a.times})

		alone := plain{limiter()}
		send(alone, "a")
		require.Nil(t, alone.Status().Paused)
		send(alone, "")
		require.NotNil(t, alone.Status().Paused)
	})
}
