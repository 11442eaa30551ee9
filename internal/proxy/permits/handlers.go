package permits

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

//go:embed openapi.yaml
var openAPI []byte

// The calls that can stop the pool.
const (
	pausePath  = "/v1/pause"
	reportPath = "/v1/report"
)

// routes returns the handlers of the API, by method and path.
func (d *desk) routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"POST /v1/acquire":   answer(d.postAcquire),
		"POST /v1/settle":    answer(d.postSettle),
		"POST /v1/cancel":    answer(d.postCancel),
		"POST " + reportPath: answer(d.postReport),
		"POST " + pausePath:  answer(d.postPause),
		"GET /v1/openapi.yaml": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/yaml")
			_, _ = w.Write(openAPI)
		},
	}
}

func (d *desk) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range d.routes() {
		mux.HandleFunc(pattern, h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if problem := d.HostNames.Problem(r); problem != "" {
			proxy.NewError(http.StatusForbidden, proxy.Forbidden, problem).Write(w)
			return
		}
		if !d.lets(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.Header().Set("Connection", "close")
			proxy.NewError(http.StatusUnauthorized, proxy.Unauthorized, "the token is missing or wrong, allowed: Authorization: Bearer TOKEN").Write(w)
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			noRoute(w, r, mux)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// lets reports whether the caller of a request has the token that it needs. A report may have the token of pauses as well.
func (d *desk) lets(r *http.Request) bool {
	values := r.Header.Values("Authorization")
	switch r.URL.Path {
	case pausePath:
		return d.pauser.Lets(r.Context(), values)
	case reportPath:
		return d.token.Lets(r.Context(), values) || d.pauser.Lets(r.Context(), values)
	}
	return d.token.Lets(r.Context(), values)
}

// noRoute answers a call without a route, in the form of all errors.
func noRoute(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := mux.Handler(other); pattern != "" {
			w.Header().Set("Allow", method)
			proxy.NewError(http.StatusMethodNotAllowed, proxy.NotAllowed, "this call needs the method "+method).Write(w)
			return
		}
	}
	proxy.NewError(http.StatusNotFound, proxy.NotFound, "there is no such call; see /v1/openapi.yaml").Write(w)
}

// answer returns the handler of a call that takes an R and returns the response.
func answer[R any, P interface {
	*R
	check() error
}](call func(ctx context.Context, r P) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		r := P(new(R))
		err := decode(w, req, r)
		var out any
		if err == nil {
			out, err = call(withCaller(req), r)
		}
		if err != nil {
			proxy.ErrorOf(err).Write(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(out) // the client has gone
	}
}

func (d *desk) postAcquire(ctx context.Context, r *acquireRequest) (any, error) {
	g, err := d.acquire(ctx, r)
	if err != nil {
		if e := proxy.ErrorOf(err); e.Tag == "" {
			e.Tag = r.Tag
			return nil, e
		}
		return nil, err
	}
	return acquireResponse{Permit: g.id, Tokens: g.tokens, Lease: g.lease.Seconds()}, nil
}

func (d *desk) postSettle(_ context.Context, r *settleRequest) (any, error) {
	if r.Outcome != "" {
		if _, ok := d.report(r.Permit, outcomes[r.Outcome]); !ok {
			return nil, notKnown()
		}
	}
	used := 0
	if r.Used == nil {
		d.mu.Lock()
		if e := d.book.entries[r.Permit]; e != nil {
			used = e.tokens
		}
		d.mu.Unlock()
	} else {
		used = int(*r.Used)
	}
	return d.done(r.Permit, settled, used)
}

func (d *desk) postCancel(_ context.Context, r *cancelRequest) (any, error) {
	return d.done(r.Permit, cancelled, 0)
}

// done ends a permit. It is no error if it ended the same way before.
func (d *desk) done(id string, as state, used int) (any, error) {
	before, ok := d.finish(id, as, used)
	switch {
	case !ok:
		return nil, notKnown()
	case before == open:
		return doneResponse{State: string(as)}, nil
	case before == as:
		return doneResponse{State: string(as), Already: true}, nil
	case before == expired:
		return nil, proxy.NewError(http.StatusGone, proxy.NotOpen,
			"the lease of the permit is over; it was settled as drawn, and what was used above that is charged")
	}
	return nil, proxy.NewError(http.StatusConflict, proxy.NotOpen, "the permit is "+string(before)+" already")
}

func notKnown() error {
	return proxy.NewError(http.StatusNotFound, proxy.NotOpen, "the permit is not known: it ended a while ago, or this process did not issue it")
}

// A told limiter decides whether all calls should wait because one was asked to.
type reported interface {
	RetryAfter(until time.Time, reason string)
}

var _ reported = (*throttle.Throttle)(nil)

// postReport records an outcome, and a wait from callers who may pause the pool: a wait can do so.
func (d *desk) postReport(ctx context.Context, r *reportRequest) (any, error) {
	already := false
	if r.Permit != "" {
		var ok bool
		if already, ok = d.report(r.Permit, outcomes[r.Outcome]); !ok {
			return nil, notKnown()
		}
	}
	if wait := duration(r.RetryAfter, 0); wait > 0 && !already {
		if problem := d.mayNotPause(ctx); problem != "" {
			return nil, proxy.NewError(http.StatusForbidden, proxy.Forbidden, problem+", and retry_after_seconds would be one: only the outcome counts")
		}
		if l, ok := d.limiterFor(r.Tag).(reported); ok {
			l.RetryAfter(time.Now().Add(wait), r.Reason)
		}
	}
	return reportResponse{Already: already}, nil
}

// mayNotPause says why a caller may not pause the pool; empty: it may.
func (d *desk) mayNotPause(ctx context.Context) string {
	switch {
	case d.NoPause:
		return "pauses are turned off here"
	case !d.pauser.Matches(callerOf(ctx).authorization):
		return "pauses need a token of their own here"
	}
	return ""
}

func (d *desk) postPause(ctx context.Context, r *pauseRequest) (any, error) {
	if problem := d.mayNotPause(ctx); problem != "" {
		return nil, proxy.NewError(http.StatusForbidden, proxy.Forbidden, problem)
	}
	if d.Pauser == nil {
		return nil, proxy.NewError(http.StatusNotImplemented, proxy.Internal, "this limit cannot be paused")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var opts []throttle.PauseOption
	if r.Tag != "" {
		opts = append(opts, throttle.PauseTag(r.Tag))
	}
	if r.Resume {
		if err := d.Pauser.Resume(ctx, opts...); err != nil {
			return nil, d.pauseFault(ctx, err)
		}
		return pauseResponse{Answered: []string{}, Missing: []string{}}, nil
	}
	var until time.Time
	if r.Seconds != nil {
		until = time.Now().Add(duration(r.Seconds, 0))
	}
	receipts, err := d.Pauser.Pause(ctx, until, r.Reason, opts...)
	if err != nil {
		return nil, d.pauseFault(ctx, err)
	}
	out := pauseResponse{Answered: append([]string{}, receipts.Answered...), Missing: append([]string{}, receipts.Missing...)}
	if !receipts.Until.IsZero() {
		out.Until = receipts.Until.UTC().Format(time.RFC3339Nano)
	}
	return out, nil
}

// pauseFault returns the answer for a failed pause.
func (d *desk) pauseFault(ctx context.Context, err error) error {
	if wrong, ok := errors.AsType[*throttle.PauseError](err); ok {
		return proxy.FieldError(wrong.Field, wrong.Value, wrong.Allowed)
	}
	if errors.Is(err, throttle.ErrClosed) {
		return err
	}
	d.Logger.WarnContext(ctx, "a pause could not be recorded", "error", err)
	return proxy.NewError(http.StatusBadGateway, string(throttle.ReasonStoreLost),
		"the pool's store does not know of it yet; this process goes by it and tells the store again. The log says why")
}
