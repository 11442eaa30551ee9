package main

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A judge counts what comes to a service.
type judge struct {
	mu       sync.Mutex
	came     []arrival
	inside   map[string]int           // requests under way, by path; "" is all
	most     map[string]int           // of them at once
	together map[string]chan struct{} // closed once as many are under way as are to be
}

// An arrival is a request with so many messages.
type arrival struct {
	path     string
	at       time.Time
	messages int
}

// enter notes a request; leave must follow.
func (j *judge) enter(path, body string, want int) (together chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.came = append(j.came, arrival{path, time.Now(), strings.Count(body, "\n")})
	for _, at := range []string{path, ""} {
		j.inside[at]++
		j.most[at] = max(j.most[at], j.inside[at])
	}
	if j.together[path] == nil {
		j.together[path] = make(chan struct{})
	}
	if j.inside[path] == want {
		select {
		case <-j.together[path]:
		default:
			close(j.together[path])
		}
	}
	return j.together[path]
}

func (j *judge) leave(path string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.inside[path]--
	j.inside[""]--
}

// startJudge starts a service with a judge. The first requests to a path stay until want of them are there together, all
// of them for a while; 0 is not at all. A path that ends in "bad" is answered with a 404.
func startJudge(t *testing.T, want int) (*testkit.Service, *judge) {
	t.Helper()
	j := &judge{inside: map[string]int{}, most: map[string]int{}, together: map[string]chan struct{}{}}
	return startService(t, func(w http.ResponseWriter, r seen, _ int) {
		together := j.enter(r.Path, r.Body, want)
		defer j.leave(r.Path)
		if want > 0 {
			select {
			case <-together:
			case <-time.After(testTimeout):
			}
			time.Sleep(10 * time.Millisecond) // what a call takes, in which others would come
		}
		if strings.HasSuffix(r.Path, "bad") {
			w.WriteHeader(http.StatusNotFound)
		}
	}), j
}

// requireWithin judges that at no time more had come to a path than burst and what the rate earns in a second; an empty path is all.
func (j *judge) requireWithin(t *testing.T, began time.Time, path string, burst, rate float64, of func(arrival) int) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	sum := 0
	for _, a := range j.came {
		if path == "" || a.path == path {
			sum += of(a)
			passed := a.at.Sub(began)
			require.LessOrEqual(t, float64(sum), burst+rate*passed.Seconds(), "%q: after %s", path, passed)
		}
	}
	require.Positive(t, sum)
}

// The limits hold at the service, which judges by its own count. A machine that is busy makes less come, never more.
func TestRatesHoldAtTheService(t *testing.T) {
	messagesOf := func(a arrival) int { return a.messages }
	requestOf := func(arrival) int { return 1 }
	for name, c := range map[string]struct {
		vars  env
		n     int
		of    func(arrival) int
		path  string
		burst float64
		rate  float64
		cost  []int64 // what all has cost, by each limit
	}{
		"messages": {env{"UNIT": "messages", "NUMATHROTTLE_MAX": "200", "NUMATHROTTLE_BURST": "10"}, 120, messagesOf, "", 10, 200, []int64{120}},
		"requests beside messages": {
			env{"UNIT": "messages", "NUMATHROTTLE_MAX": "1000000", "MAX_REQUESTS": "20"}, 120, requestOf, "", 2, 20, []int64{120, 12},
		},
		"messages to each destination": {
			env{"UNIT": "messages", "DESTINATION_MAX": "100"}, 120, messagesOf, "/a", 10, 100, []int64{60, 60},
		},
	} {
		t.Run(name, func(t *testing.T) {
			service, j := startJudge(t, 0)
			vars := env{
				"URL": service.URL + "/{{.Key}}", "DESTINATION": "{{.Key}}", "FORMAT": "ndjson", "MAX_MESSAGES": "10",
				"NUMATHROTTLE_STORE": "static://?replicas=1",
			}
			maps.Copy(vars, c.vars)
			began := time.Now()
			r := start(t, vars)
			in := numbered(c.n)
			for i := range in {
				in[i].Keys = []string{[]string{"a", "b"}[i%2]}
			}
			require.Equal(t, all(c.n, dataplane.SinkSuccess), statuses(r.do(in...)))
			j.requireWithin(t, began, c.path, c.burst, c.rate, c.of)
			require.Len(t, j.came, c.n/10)
			var cost []int64
			for _, l := range r.limits.rates {
				cost = append(cost, l.Status().Granted)
			}
			require.Equal(t, c.cost, cost)
		})
	}
}

// No more requests are under way at the service than the limit says, and so many are; a call that fails gives its place back.
func TestCallsInFlightHoldAtTheService(t *testing.T) {
	for name, c := range map[string]struct {
		vars env
		to   [2]string
		want int            // to each path, together
		most map[string]int // at once
	}{
		"over all":            {env{"IN_FLIGHT": "4"}, [2]string{"bad", "bad"}, 4, map[string]int{"": 4}},
		"to each destination": {env{"DESTINATION_IN_FLIGHT": "3"}, [2]string{"a", "bad"}, 3, map[string]int{"/a": 3, "/bad": 3}},
		"both":                {env{"IN_FLIGHT": "4", "DESTINATION_IN_FLIGHT": "3"}, [2]string{"a", "bad"}, 2, map[string]int{"/a": 3, "/bad": 3, "": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			service, j := startJudge(t, c.want)
			vars := env{
				"URL": service.URL + "/{{.Key}}", "DESTINATION": "{{.Key}}", "CONCURRENCY": "16", "NUMATHROTTLE_STORE": "static://?replicas=1",
			}
			maps.Copy(vars, c.vars)
			r := start(t, vars)
			in := numbered(40)
			want := make([]dataplane.SinkStatus, len(in))
			for i := range in {
				to := c.to[i%2]
				in[i].Keys, want[i] = []string{to}, map[string]dataplane.SinkStatus{"a": dataplane.SinkSuccess, "bad": dataplane.SinkFailure}[to]
			}
			require.Equal(t, want, statuses(r.do(in...)))
			for path, most := range c.most {
				require.LessOrEqual(t, j.most[path], most, "%q", path)
			}
			for path, together := range j.together {
				select {
				case <-together:
				default:
					require.Fail(t, "the limit was never used up", path)
				}
			}
		})
	}
}

// What the service makes of the calls reaches the limits that follow it, and the transport knows that there are some.
func TestAnAdaptiveLimitIsTold(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, _ seen, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	for name, vars := range map[string]env{"over all": {"NUMATHROTTLE_MAX": "1000"}, "to each destination": {"DESTINATION_MAX": "1000"}} {
		t.Run(name, func(t *testing.T) {
			service.Forget()
			vars["URL"], vars["NUMATHROTTLE_ADAPTIVE"], vars["NUMATHROTTLE_STORE"] = service.URL, "true", "static://?replicas=1"
			r := start(t, vars)
			require.True(t, hook.Adaptive(r.limits))
			results := r.do(numbered(20)...)
			require.Len(t, results, 20)
			at := r.limits.rates[0].Status().Backoff
			require.EqualValues(t, 1, at.Refused)
			require.EqualValues(t, 19, at.Accepted)
		})
	}
	require.False(t, hook.Adaptive(start(t, env{"URL": service.URL, "NUMATHROTTLE_MAX": "5"}).limits))
}
