package outbound

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Breakers stop calls to a destination after consecutive failures, and let single ones try after a while. Their methods are safe for
// concurrent use. A nil Breakers never stops anything.
type Breakers struct {
	failures uint32
	open     time.Duration
	most     int
	changed  func(destination string, open bool)

	mu sync.Mutex
	at map[string]*breaker
}

type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]

	mu    sync.Mutex
	until time.Time
}

// NewBreakers returns breakers that open after so many consecutive failures, for so long. The number of breakers is at most most: further
// destinations share one. If changed is not nil, it is called when one opens or closes.
func NewBreakers(failures int, open time.Duration, most int, changed func(destination string, open bool)) *Breakers {
	return &Breakers{failures: uint32(failures), open: open, most: most, changed: changed, at: map[string]*breaker{}}
}

// An OpenError means that a destination is not called for now.
type OpenError struct {
	// RetryAfter is when a call may try again; 0 while one is trying.
	RetryAfter time.Duration
}

// Error implements error.
func (*OpenError) Error() string { return "the breaker is open: too many calls in a row have failed" }

// errFailed reports a failure to a breaker, and errSkipped a result that says nothing about the service.
var (
	errFailed  = errors.New("failed")
	errSkipped = errors.New("skipped")
)

func (b *Breakers) of(destination string) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.at[destination]; at != nil {
		return at
	}
	if len(b.at) >= b.most {
		destination = ""
		if at := b.at[destination]; at != nil {
			return at
		}
	}
	at := &breaker{}
	at.TwoStepCircuitBreaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      b.open,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= b.failures },
		IsSuccessful: func(err error) bool { return err == nil },
		IsExcluded:   func(err error) bool { return errors.Is(err, errSkipped) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			at.moved(to, b.open)
			if b.changed != nil && to != gobreaker.StateHalfOpen {
				b.changed(destination, to == gobreaker.StateOpen)
			}
		},
	})
	b.at[destination] = at
	return at
}

func (b *breaker) moved(to gobreaker.State, open time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = time.Time{}
	if to == gobreaker.StateOpen {
		b.until = time.Now().Add(open)
	}
}

func (b *breaker) left() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(time.Until(b.until), 0)
}

// Check returns an *OpenError if a call to a destination would not be made. Call it before drawing for the call.
func (b *Breakers) Check(destination string) error {
	if b == nil {
		return nil
	}
	at := b.of(destination)
	switch at.State() {
	case gobreaker.StateOpen:
		return &OpenError{RetryAfter: at.left()}
	case gobreaker.StateHalfOpen:
		if at.Counts().Requests > 0 {
			return &OpenError{}
		}
	case gobreaker.StateClosed:
	}
	return nil
}

// Guard returns a transport that reports each attempt to the breakers, and makes none at an open one. The result of judge is whether the
// service failed according to a response, and whether the response counts.
func (b *Breakers) Guard(base http.RoundTripper, destination func(*http.Request) string, judge func(*http.Response) (failed, counts bool)) http.RoundTripper {
	if b == nil {
		return base
	}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		at := b.of(destination(req))
		done, err := at.Allow()
		if err != nil {
			closeBody(req)
			return failure(req, &OpenError{RetryAfter: at.left()}), nil
		}
		verdict := errSkipped
		defer func() { done(verdict) }() // also when something panics
		res, err := base.RoundTrip(req)
		if err != nil {
			return nil, err // the context has ended
		}
		switch failed, counts := judge(res); {
		case failed:
			verdict = errFailed
		case counts:
			verdict = nil
		}
		return res, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
