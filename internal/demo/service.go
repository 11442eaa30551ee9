package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
)

// grantedHeader carries the time of the call's permit, in nanoseconds since 1970, on this machine's clock.
const grantedHeader = "X-Granted-At"

// lateAfter is the time between grant and arrival after which a call counts as delayed by its caller: a process that was stopped while it
// held permits.
const lateAfter = 500 * time.Millisecond

// A service is the service that the mappers call. It counts words, records the time of every call on its own clock, and refuses calls above
// bound in any second.
type service struct {
	bound int
	url   string
	close func()

	mu       sync.Mutex
	arrivals []time.Time // of calls that came in time
	grants   []time.Time // of all calls
	late     int
	refused  int
	first    int // the first arrival of the last second
}

func startService(ctx context.Context, bound int) (s *service, err error) {
	s = &service{bound: bound}
	s.url, s.close, err = stage.Serve(ctx, s)
	return s, err
}

// ServeHTTP answers a call with the number of words in its body.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	ns, errStamp := strconv.ParseInt(r.Header.Get(grantedHeader), 10, 64)
	if err != nil || errStamp != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if !s.admit(time.Unix(0, ns)) {
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	_, _ = fmt.Fprint(w, len(strings.Fields(string(body))))
}

func (s *service) admit(granted time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now() // under the lock, so that arrivals are in order
	if now.Sub(granted) > lateAfter {
		// Granted in time and used late: no limiter can prevent that.
		s.late++
		s.grants = append(s.grants, granted)
		return true
	}
	for s.first < len(s.arrivals) && now.Sub(s.arrivals[s.first]) >= time.Second {
		s.first++
	}
	if len(s.arrivals)-s.first >= s.bound {
		s.refused++
		return false
	}
	s.arrivals = append(s.arrivals, now)
	s.grants = append(s.grants, granted)
	return true
}

// calls returns how many calls were served between two moments of its clock.
func (s *service) calls(from, to time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return countBetween(s.arrivals, from, to)
}

// A tally holds all counts of the service.
type tally struct{ calls, byArrival, byGrant, late, refused int }

func (s *service) tally() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := tally{calls: len(s.grants), late: s.late, refused: s.refused}
	t.byArrival, _ = maxWindow(s.arrivals, time.Second)
	t.byGrant, _ = maxWindow(s.grants, time.Second)
	return t
}
