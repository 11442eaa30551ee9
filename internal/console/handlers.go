package console

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

//go:embed console.html
var page string

// noncePlace is the placeholder in the page for the nonce of a response.
const noncePlace = "NONCE"

func (k *Console) routes() {
	k.mux.HandleFunc("GET /{$}", k.page)
	k.mux.HandleFunc("GET /api/session", k.session)
	k.mux.HandleFunc("POST /api/login", k.login)
	k.mux.HandleFunc("POST /api/logout", k.change(k.logout))
	k.mux.HandleFunc("GET /api/pools", k.reading(k.pools))
	k.mux.HandleFunc("GET /api/pool", k.reading(k.pool))
	k.mux.HandleFunc("POST /api/pause", k.change(k.pause))
	k.mux.HandleFunc("POST /api/resume", k.change(k.resume))
	k.mux.HandleFunc("POST /api/limit", k.change(k.limit))
	k.mux.HandleFunc("POST /api/limit/clear", k.change(k.clearLimit))
	k.mux.HandleFunc("POST /api/debt/forgive", k.change(k.forgiveDebt))
	k.mux.HandleFunc("POST /api/quota", k.change(k.quota))
	k.mux.HandleFunc("POST /api/quota/clear", k.change(k.clearQuota))
}

// ServeHTTP implements http.Handler.
func (k *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	switch {
	case k.loopback && !k.c.HostNames.Takes(r.Host):
		fail(w, http.StatusForbidden, "this console listens on loopback: ask for localhost, or for a name of its setting host-names")
		return
	case listen.CrossSite(r) && !isLink(r):
		fail(w, http.StatusForbidden, "the request comes from another site")
		return
	}
	if !k.sessions.any {
		listen.Admit(r.Context())
	}
	k.mux.ServeHTTP(w, r)
}

// isLink reports whether somebody followed a link to the page, which shows nothing by itself and is not in a frame.
func isLink(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func (k *Console) page(w http.ResponseWriter, _ *http.Request) {
	nonce := rand.Text()
	w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; style-src 'nonce-"+nonce+
		"'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, strings.ReplaceAll(page, noncePlace, nonce)) // the client has gone
}

// A failure is the body of an error response.
type failure struct {
	Error string `json:"error"`
}

func fail(w http.ResponseWriter, code int, text string) { answer(w, code, failure{text}) }

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	text, err := json.Marshal(v)
	if err == nil {
		_, _ = w.Write(text) // the client has gone
	}
}

// A whoami describes the page's session.
type whoami struct {
	Store string `json:"store"`
	// Login reports that there is a token, In that this page has shown it. Word is sent once, with the login.
	Login bool   `json:"login"`
	In    bool   `json:"in"`
	By    string `json:"by"`
	Word  string `json:"word,omitempty"`
}

func (k *Console) session(w http.ResponseWriter, r *http.Request) {
	s, in := k.sessions.of(r)
	me := whoami{Login: k.sessions.any, In: in}
	if in || !k.sessions.any {
		me.Store = k.c.StoreURL
	}
	if in {
		me.By = s.by
	}
	answer(w, http.StatusOK, me)
}

func (k *Console) login(w http.ResponseWriter, r *http.Request) {
	var body struct{ Token, By string }
	if !read(w, r, &body) {
		return
	}
	if !k.sessions.any {
		fail(w, http.StatusForbidden, "this console has no token, and only shows")
		return
	}
	if err := (&throttle.Paused{By: body.By}).Check(time.Now()); err != nil || body.By == "" {
		fail(w, http.StatusBadRequest, "your name is missing, or has more than 64 bytes")
		return
	}
	tired := k.sessions.tired(r)
	s, word, ok := k.sessions.begin(r, body.Token, body.By)
	switch {
	case !ok && tired:
		fail(w, http.StatusTooManyRequests, "too many wrong tokens from your address")
		return
	case !ok:
		k.c.Logger.Warn("console: somebody has tried a wrong token", "remote", r.RemoteAddr)
		fail(w, http.StatusUnauthorized, "the token is wrong")
		return
	}
	answer(w, http.StatusOK, whoami{Store: k.c.StoreURL, Login: true, In: true, By: s.by, Word: word})
}

// reading admits requests that may read.
func (k *Console) reading(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, in := k.sessions.of(r); k.sessions.any && !in {
			fail(w, http.StatusUnauthorized, "log in first")
			return
		}
		next(w, r)
	}
}

// change admits requests of a session, which may make changes.
func (k *Console) change(next func(w http.ResponseWriter, r *http.Request, s session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, in := k.sessions.of(r)
		switch {
		case !k.sessions.any:
			fail(w, http.StatusForbidden, "this console has no token, and only shows")
		case !in:
			fail(w, http.StatusUnauthorized, "log in first")
		default:
			next(w, r, s)
		}
	}
}

// maxBody is the maximum size of a request body.
const maxBody = 4 << 10

// read reads a body, or answers with its error.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "the body is no JSON")
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "the body is too large, or was cut off")
		return false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		fail(w, http.StatusBadRequest, "the body is not what is asked for")
		return false
	}
	return true
}

func (k *Console) logout(w http.ResponseWriter, r *http.Request, _ session) {
	k.sessions.end(r)
	answer(w, http.StatusOK, struct{}{})
}

// An asked is the body of a change. Seconds is how long it lasts; 0: until it is cleared.
type asked struct {
	Pool, Tag, Reason string
	Seconds           float64
	Max               int
	PerSeconds        float64

	askedQuota
}

// until returns when the change ends.
func (a *asked) until(now time.Time) time.Time {
	if a.Seconds == 0 {
		return time.Time{}
	}
	return now.Add(seconds(a.Seconds))
}

// seconds converts to a duration. Values too large for one are refused as too long.
func seconds(f float64) time.Duration {
	const most = 1e9 // more than thirty years
	return time.Duration(min(max(f, -most), most) * float64(time.Second)).Round(time.Microsecond)
}

func (k *Console) pause(w http.ResponseWriter, r *http.Request, s session) {
	k.apply(w, r, s, true, func(ctx context.Context, p *operate.Pool, a *asked) error {
		return p.Pause(ctx, throttle.Paused{Tag: a.Tag, Until: a.until(time.Now()), Reason: a.Reason, By: s.by})
	})
}

func (k *Console) resume(w http.ResponseWriter, r *http.Request, s session) {
	k.apply(w, r, s, false, func(ctx context.Context, p *operate.Pool, a *asked) error {
		_, err := p.Resume(ctx, a.Tag)
		return err
	})
}

func (k *Console) limit(w http.ResponseWriter, r *http.Request, s session) {
	k.apply(w, r, s, true, func(ctx context.Context, p *operate.Pool, a *asked) error {
		_, err := p.SetLimit(ctx, protocol.Override{
			Max: a.Max, Per: seconds(a.PerSeconds), Until: a.until(time.Now()), Reason: a.Reason, By: s.by,
		})
		return err
	})
}

func (k *Console) clearLimit(w http.ResponseWriter, r *http.Request, s session) {
	k.apply(w, r, s, false, func(ctx context.Context, p *operate.Pool, _ *asked) error {
		_, err := p.ClearLimit(ctx)
		return err
	})
}

func (k *Console) forgiveDebt(w http.ResponseWriter, r *http.Request, s session) {
	k.apply(w, r, s, true, func(ctx context.Context, p *operate.Pool, a *asked) error { return p.ForgiveDebt(ctx, a.Reason, s.by) })
}

// apply makes a change and shows it to all viewers of the pool. why reports whether a reason is required.
func (k *Console) apply(w http.ResponseWriter, r *http.Request, s session, why bool,
	change func(ctx context.Context, p *operate.Pool, a *asked) error,
) {
	var a asked
	if !read(w, r, &a) {
		return
	}
	if why && strings.TrimSpace(a.Reason) == "" {
		fail(w, http.StatusBadRequest, "a reason is missing")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	pool := operate.Pool{Store: k.c.Store, Name: a.Pool}
	if k.c.Quotas != nil {
		pool.Quotas = k.c.Quotas(a.Pool)
	}
	if err := change(ctx, &pool, &a); err != nil {
		fail(w, codeOf(err), storeText(err))
		return
	}
	k.c.Logger.Info("console: a pool was changed", "pool", a.Pool, "path", r.URL.Path, "tag", a.Tag, "by", s.by, "reason", a.Reason)
	k.hub.hurry(ctx, a.Pool)
	answer(w, http.StatusOK, struct{}{})
}

// codeOf returns the status code for the error of a change.
func codeOf(err error) int {
	var request *driver.RequestError
	var pause *throttle.PauseError
	var conflict *driver.ConflictError
	var empty *operate.EmptyPoolError
	switch {
	case errors.As(err, &request), errors.As(err, &pause), errors.As(err, &empty):
		return http.StatusUnprocessableEntity
	case errors.As(err, &conflict):
		return http.StatusConflict
	case errors.Is(err, driver.ErrNoPool):
		return http.StatusNotFound
	}
	return http.StatusBadGateway
}
