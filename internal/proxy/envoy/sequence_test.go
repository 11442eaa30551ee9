package envoy

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	ok        = ratelimit.RateLimitResponse_OK
	overLimit = ratelimit.RateLimitResponse_OVER_LIMIT
)

// model is the descriptor of Envoy AI Gateway: a backend and a model. hits below 0: hits_addend is not set.
func model(hits int) *descriptor.RateLimitDescriptor {
	d := &descriptor.RateLimitDescriptor{Entries: []*descriptor.RateLimitDescriptor_Entry{
		{Key: "backend_name", Value: "openai"}, {Key: "model_name_override", Value: "gpt"},
	}}
	if hits >= 0 {
		d.HitsAddend = wrapperspb.UInt64(uint64(hits))
	}
	return d
}

func newService(l throttle.Limiter) *service {
	return &service{limiter: l, log: slog.New(slog.DiscardHandler)}
}

// send sends a request with one descriptor; whole is the hits_addend of the request.
func send(t testing.TB, s *service, whole int, d ...*descriptor.RateLimitDescriptor) *ratelimit.RateLimitResponse {
	t.Helper()
	res, err := s.ShouldRateLimit(context.Background(), &ratelimit.RateLimitRequest{Domain: "ai", HitsAddend: uint32(whole), Descriptors: d})
	require.NoError(t, err)
	return res
}

// Envoy asks before each request, and reports what it has cost when its response is over, without regard to the answer. The limit
// holds in the long run whatever a call costs, and it is used.
func TestReportedCostsHoldTheLimit(t *testing.T) {
	type sequence struct {
		name   string
		asks   int // hits of the descriptor that asks; below 0: none
		whole  bool
		drawn  int // what an answer of OK has drawn
		quotas bool
	}
	for _, q := range []sequence{
		{name: "zero hits", asks: 0},
		{name: "zero hits, and the cost of the request", asks: 0, whole: true},
		{name: "no hits", asks: -1, drawn: 1},
		{name: "zero hits, a tag with a quota", asks: 0, quotas: true},
	} {
		for _, callers := range []int{1, 8} {
			for _, cost := range []int{1, 89, 5000} {
				t.Run(fmt.Sprintf("%s/%d callers/%d tokens", q.name, callers, cost), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						const rate = 100
						limit, opts := throttle.Limit{Max: rate}, []throttle.Option(nil)
						if q.quotas {
							limit.Max = 10 * rate
							opts = append(opts, throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"openai/gpt": {Total: rate}}}))
						}
						th, err := throttle.New(limit, opts...)
						require.NoError(t, err)
						s := newService(th)
						span := time.Duration(max(60, 4*callers*cost/rate)) * time.Second
						end := time.Now().Add(span)
						var passed atomic.Int64
						var wg sync.WaitGroup
						for range callers {
							wg.Go(func() {
								for time.Now().Before(end) {
									if res := send(t, s, 0, model(q.asks)); res.GetOverallCode() != ok {
										time.Sleep(5*time.Millisecond + res.GetStatuses()[0].GetDurationUntilReset().AsDuration()/2)
										continue
									}
									time.Sleep(50 * time.Millisecond) // the call
									if q.whole {
										send(t, s, cost, model(-1))
									} else {
										send(t, s, 0, model(cost))
									}
									passed.Add(int64(cost + q.drawn))
								}
							})
						}
						wg.Wait()
						require.NoError(t, th.Close())
						most := rate*span.Seconds() + rate/10 + float64(callers*(cost+q.drawn)) // what was under way when the limit was reached
						require.LessOrEqual(t, float64(passed.Load()), most)
						// One call lasts 50 ms, so that few callers with small costs do not reach the limit.
						least := 0.9 * min(rate*span.Seconds(), float64(callers*(cost+q.drawn))*span.Seconds()/0.056)
						require.GreaterOrEqual(t, float64(passed.Load()), least)
					})
				})
			}
		}
	}
}

// The limit holds for a pool of services, too, of which one is asked and another one is told the cost.
func TestReportedCostsHoldTheLimitOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			rate, cost, callers = 100, 700, 6
			span                = 10 * time.Minute
		)
		store := memstore.New()
		var services []*service
		for i := range 3 {
			m, err := consensus.Join(t.Context(), store, "p", consensus.WithID(fmt.Sprint(i)))
			require.NoError(t, err)
			th, err := throttle.New(throttle.Limit{Max: rate}, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			services = append(services, newService(th))
			t.Cleanup(func() { _ = th.Close() })
		}
		time.Sleep(30 * time.Second) // the pool is new to its store
		end := time.Now().Add(span)
		var passed atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for n := i; time.Now().Before(end); n++ {
					if send(t, services[n%3], 0, model(0)).GetOverallCode() != ok {
						time.Sleep(50 * time.Millisecond)
						continue
					}
					time.Sleep(50 * time.Millisecond)
					send(t, services[(n+1)%3], 0, model(cost))
					passed.Add(cost)
				}
			})
		}
		wg.Wait()
		require.InDelta(t, rate*span.Seconds(), passed.Load(), callers*cost+0.1*rate*span.Seconds())
	})
}

// Callers that are refused and ask again slow nobody down: a refused request that asks takes nothing.
func TestARefusedRequestTakesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		whole, own int
		askOnly    bool
	}{
		"no hits": {0, -1, false}, "hits of the request": {5, -1, false}, "asking hits": {0, 5, true}, "more than is ever at hand": {50, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, err := throttle.New(throttle.Limit{Max: 100})
				require.NoError(t, err)
				s := newService(th)
				s.askOnly = c.askOnly
				passed := 0
				for end := time.Now().Add(time.Minute); time.Now().Before(end); { // hundreds of requests in a second
					if send(t, s, c.whole, model(c.own)).GetOverallCode() == ok {
						passed += max(c.whole, c.own, 1)
					}
					time.Sleep(time.Millisecond)
				}
				require.NoError(t, th.Close())
				require.InDelta(t, 6000, passed, 60)
			})
		})
	}
}

// A cost that is reported is charged whatever is at hand, and whoever asks is told when it is paid.
func TestAReportIsAlwaysCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 100})
		require.NoError(t, err)
		s := newService(th)
		require.Equal(t, overLimit, send(t, s, 0, model(700)).GetOverallCode(), "nothing is at hand")
		require.Equal(t, overLimit, send(t, s, 0, model(300)).GetOverallCode())
		res := send(t, s, 0, model(0))
		require.Equal(t, overLimit, res.GetOverallCode())
		require.InDelta(t, 10.01, res.GetStatuses()[0].GetDurationUntilReset().AsDuration().Seconds(), 0.001)
		require.EqualValues(t, 100, res.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit())
		require.Zero(t, res.GetStatuses()[0].GetLimitRemaining())
		time.Sleep(10 * time.Second)
		require.Equal(t, overLimit, send(t, s, 0, model(0)).GetOverallCode())
		time.Sleep(11 * time.Millisecond)
		for range 100 {
			res = send(t, s, 0, model(0))
			require.Equal(t, ok, res.GetOverallCode(), "zero hits take nothing")
			require.Nil(t, res.GetStatuses()[0].GetCurrentLimit())
		}
		require.NoError(t, th.Close())
	})
}

// Zero hits see a pause.
func TestZeroHitsArePaused(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 100, Burst: 100})
	require.NoError(t, err)
	s := newService(th)
	require.Eventually(t, func() bool { return send(t, s, 0, model(0)).GetOverallCode() == ok }, time.Minute, time.Millisecond)
	_, err = th.Pause(t.Context(), time.Now().Add(time.Hour), "maintenance")
	require.NoError(t, err)
	res := send(t, s, 0, model(0))
	require.Equal(t, overLimit, res.GetOverallCode())
	require.Equal(t, "pause", res.GetResponseHeadersToAdd()[0].GetValue())
	require.InDelta(t, 3600, res.GetStatuses()[0].GetDurationUntilReset().AsDuration().Seconds(), 60)
}

// Negative hits give back what was drawn, and no more.
func TestNegativeHits(t *testing.T) {
	quota := &throttle.Quotas{Tags: map[string]throttle.Quota{"openai/gpt": {Total: 100, Burst: 50}}}
	for name, quotas := range map[string]*throttle.Quotas{"no quotas": nil, "a quota": quota} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts []throttle.Option
				if quotas != nil {
					opts = append(opts, throttle.WithQuotas(*quotas))
				}
				th, err := throttle.New(throttle.Limit{Max: 100, Burst: 50}, opts...)
				require.NoError(t, err)
				s := newService(th)
				time.Sleep(time.Second)
				back := func(n int) {
					t.Helper()
					d := model(n)
					d.IsNegativeHits = true
					require.Equal(t, ok, send(t, s, 0, d).GetOverallCode())
				}
				held := func() int {
					st, known := statusOf(throttle.ForTags(th, "openai/gpt"))
					require.True(t, known)
					return int(st.Tokens)
				}
				require.Equal(t, ok, send(t, s, 40, model(-1)).GetOverallCode())
				require.Equal(t, 10, held())
				back(15)
				require.Equal(t, 25, held())
				back(1_000_000)
				require.Equal(t, 50, held(), "as many as were drawn")
				send(t, s, 0, model(80))
				require.Equal(t, -30, int(th.Status().Tokens))
				back(1_000_000)
				require.Equal(t, 50, int(th.Status().Tokens))
				require.Equal(t, ok, send(t, s, 50, model(-1)).GetOverallCode())
				require.Equal(t, overLimit, send(t, s, 0, model(0)).GetOverallCode())
				back(50)
				back(50)
				require.Equal(t, 50, held(), "once")

				p, granted := throttle.ForTags(th, "openai/gpt").TryAcquire(50) // by somebody else
				require.True(t, granted)
				back(50)
				require.Zero(t, held(), "it was not drawn here")
				p.Cancel()
				require.Equal(t, ok, send(t, s, 10, model(-1)).GetOverallCode())
				_, granted = throttle.ForTags(th, "openai/gpt").TryAcquire(40)
				require.True(t, granted)
				back(50)
				require.Equal(t, 10, held())
				require.NoError(t, th.Close())
			})
		})
	}
}

// A limit whose tokens are issued one by one has none at hand before somebody asks.
func TestZeroHitsOfAStrictLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 5, Strict: true})
		require.NoError(t, err)
		s := newService(th)
		passed := 0
		for end := time.Now().Add(200 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if send(t, s, 0, model(0)).GetOverallCode() == ok {
				send(t, s, 0, model(7))
				passed += 7
			}
		}
		require.NoError(t, th.Close())
		require.InDelta(t, 1000, passed, 40)
	})
}

// What a closed limiter is asked ends with an error, so that Envoy goes by failure_mode_deny.
func TestAClosedLimiter(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 5})
	require.NoError(t, err)
	require.NoError(t, th.Close())
	for _, hits := range []int{0, 5} {
		_, err = newService(th).ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{Descriptors: []*descriptor.RateLimitDescriptor{model(hits)}})
		require.ErrorContains(t, err, "closed")
	}
}

// What is remembered is bounded in number and size, and ages.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	var p probed
	var d drawn
	now := time.Now()
	name := func(i int) string { return fmt.Sprintf("%s%d", strings.Repeat("x", 100), i) }
	of := func(i int) shape { return shapeOf(&ratelimit.RateLimitRequest{Domain: name(i)}, model(0)) }
	for i := range 3 * maxDrawn {
		p.note(of(i), now)
		d.add([]string{name(i)}, 2, now)
	}
	require.Len(t, p.at, maxShapes)
	require.Len(t, d.lately.tags, maxDrawn)
	require.Equal(t, 6*maxDrawn, d.take(nil, 1_000_000_000, now))
	require.False(t, p.lately(of(3*maxDrawn-1), now.Add(2*time.Hour)))

	d = drawn{}
	tag := []string{"a"}
	d.add(tag, 10, now)
	now = now.Add(drawnFor - time.Minute)
	d.add(tag, 5, now)
	require.Equal(t, 1, d.take(tag, 1, now))
	now = now.Add(2 * time.Minute)
	d.add(tag, 3, now)
	require.Equal(t, 2, d.take(tag, 2, now))
	require.Zero(t, d.take([]string{"a", "b"}, 2, now))
	require.Equal(t, 15, d.take(tag, 100, now))
	require.Zero(t, d.take(nil, 100, now))
	d.add(tag, 7, now)
	now = now.Add(drawnFor + time.Minute)
	d.add(tag, 1, now)
	require.Equal(t, 8, d.take(tag, 100, now))
	d.add(tag, 7, now)
	now = now.Add(drawnFor + time.Minute)
	require.Equal(t, 4, d.take(tag, 4, now), "nothing was drawn since")
	require.Equal(t, 3, d.take(tag, 100, now))
	long := strings.Repeat("x", 129)
	twice := []string{long, tagname.Short(long)}
	d.add(twice, 7, now)
	d.add([]string{"b"}, 100, now)
	now = now.Add(drawnFor + time.Minute)
	require.Equal(t, 7, d.take(twice, 10, now), "both are the same tag")
	d.add(tag, 7, now)
	require.Zero(t, d.take(tag, 100, now.Add(2*drawnFor)), "it is too old")
	require.Empty(t, d.lately.tags)
}

// Routes differ by their domain and keys, wherever one of these ends, and not by values.
func TestShapes(t *testing.T) {
	seen := map[shape]string{}
	for _, route := range [][]string{{"d"}, {"d", "a"}, {"da"}, {"d", "a", "b"}, {"d", "ab"}, {"d", "a\x00b"}, {"d\x00a"}, {"", "d"}} {
		d := &descriptor.RateLimitDescriptor{}
		for _, key := range route[1:] {
			d.Entries = append(d.Entries, &descriptor.RateLimitDescriptor_Entry{Key: key, Value: "v"})
		}
		of := shapeOf(&ratelimit.RateLimitRequest{Domain: route[0]}, d)
		require.Empty(t, seen[of], route)
		seen[of] = fmt.Sprint(route)
		for _, e := range d.GetEntries() {
			e.Value = "w"
		}
		require.Equal(t, of, shapeOf(&ratelimit.RateLimitRequest{Domain: route[0]}, d))
	}
}

// A late limiter is one on a busy machine: the time to wait is over before it is asked.
type late struct{ throttle.Limiter }

func (l late) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	time.Sleep(10 * time.Millisecond) // of virtual time
	return l.Limiter.Acquire(ctx, n)
}

func (l late) Unwrap() throttle.Limiter { return l.Limiter }

// On a busy machine a call gets the tokens that are there, and is told for how long there are none.
func TestALateDraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 10, Per: time.Hour, Burst: 10})
		require.NoError(t, err)
		defer th.Close()
		s := newService(late{th})
		one := &descriptor.RateLimitDescriptor{Entries: []*descriptor.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}}}
		time.Sleep(2 * time.Hour)
		for range 10 {
			require.Equal(t, ratelimit.RateLimitResponse_OK, send(t, s, 1, one).GetOverallCode(), "a token is there")
		}
		res := send(t, s, 1, one)
		require.Equal(t, ratelimit.RateLimitResponse_OVER_LIMIT, res.GetOverallCode())
		require.Positive(t, res.GetStatuses()[0].GetDurationUntilReset().AsDuration())
		var reported []string
		for _, h := range res.GetResponseHeadersToAdd() {
			reported = append(reported, h.GetKey())
		}
		require.Contains(t, reported, "retry-after")
	})
}
