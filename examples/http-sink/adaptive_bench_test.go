package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// A capped is a service that allows so many calls a second and refuses the others.
type capped struct {
	*httptest.Server

	mu       sync.Mutex
	allow    func(now time.Time) bool
	after    string // Retry-After of a refusal; empty for none
	ok, bad  int
	from, to time.Time // when calls count
}

// bucket allows rate a second, and burst at once.
func bucket(rate, burst float64) func(time.Time) bool {
	level, at := burst, time.Now()
	return func(now time.Time) bool {
		level = min(burst, level+rate*now.Sub(at).Seconds())
		at = now
		if level < 1 {
			return false
		}
		level--
		return true
	}
}

// window allows n in any second.
func window(n int) func(time.Time) bool {
	var came []time.Time
	return func(now time.Time) bool {
		for len(came) > 0 && now.Sub(came[0]) >= time.Second {
			came = came[1:]
		}
		if len(came) >= n {
			return false
		}
		came = append(came, now)
		return true
	}
}

func startCapped(tb testing.TB, allow func(time.Time) bool, after string) *capped {
	tb.Helper()
	c := &capped{allow: allow, after: after}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c.mu.Lock()
		now := time.Now()
		ok := c.allow(now)
		switch counts := now.After(c.from) && now.Before(c.to); {
		case counts && ok:
			c.ok++
		case counts:
			c.bad++
		}
		c.mu.Unlock()
		if !ok {
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	tb.Cleanup(c.Close)
	return c
}

// BenchmarkBesideAServiceThatAllowsLess measures how much of what a service allows the sink uses whose limit is higher: 50 a second, of which
// the service takes 30. Messages are always waiting. The figures are those of docs/limits.md:
//
//	go test -run='^$' -bench=BesideAService -benchtime=1x ./examples/http-sink
func BenchmarkBesideAServiceThatAllowsLess(b *testing.B) {
	const rate, warm, lasts = 30, 10 * time.Second, 40 * time.Second
	for _, law := range []string{"false", "true"} {
		for name, allow := range map[string]func() func(time.Time) bool{
			"bucket": func() func(time.Time) bool { return bucket(rate, 3) }, "window": func() func(time.Time) bool { return window(rate) },
		} {
			for _, after := range []string{"", "1"} {
				for _, store := range []string{"static://?replicas=1", "memory://"} {
					b.Run(fmt.Sprintf("adaptive=%s/%s/retryAfter=%s/%s", law, name, after, store[:6]), func(b *testing.B) {
						for range b.N {
							besideAService(b, startCapped(b, allow(), after), env{
								"NUMATHROTTLE_ADAPTIVE": law, "NUMATHROTTLE_STORE": store, "NUMATHROTTLE_POOL": b.Name(),
							}, rate, warm, lasts)
						}
					})
				}
			}
		}
	}
}

func besideAService(b *testing.B, service *capped, vars env, rate float64, warm, lasts time.Duration) {
	b.Helper()
	all := env{
		"URL": service.URL, "ALLOW_ADDRESSES": "loopback", "NUMATHROTTLE_MAX": "50", "CONCURRENCY": "100", "FAIL_DELAY": "1ms", "MAX_ATTEMPTS": "100",
		"NUMATHROTTLE_ID": "bench",
	}
	maps.Copy(all, vars)
	for name, value := range all {
		if name[:3] != "NUM" {
			name = prefix + name
		}
		b.Setenv(name, value)
	}
	s, err := loadSettings()
	require.NoError(b, err)
	k, err := newSink(b.Context(), &s, slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	defer func() { require.NoError(b, k.close()) }()
	server := dataplane.Serve(b, k.handler)
	if s.Pool.Store == "memory://" {
		warm += 16 * time.Second // until a new pool has settled
	}
	began := time.Now()
	service.mu.Lock()
	service.from, service.to = began.Add(warm), began.Add(warm+lasts)
	service.mu.Unlock()
	var running sync.WaitGroup
	for range 4 { // so that some wait while the last ones of a batch are tried again
		socket, err := dataplane.DialSink(b.Context(), server.Socket)
		require.NoError(b, err)
		b.Cleanup(socket.Abort)
		running.Go(func() {
			for time.Since(began) < warm+lasts {
				in := make([]dataplane.Message, 50)
				for i := range in {
					in[i].Value = []byte(strconv.Itoa(i))
				}
				if _, err := socket.Do(b.Context(), in); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	service.mu.Lock()
	defer service.mu.Unlock()
	took := lasts.Seconds()
	b.ReportMetric(float64(service.ok)/took/rate, "of_what_it_allows")
	b.ReportMetric(float64(service.bad)/float64(service.ok+service.bad), "refused")
	b.ReportMetric(0, "ns/op")
}
