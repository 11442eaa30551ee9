package outbound

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// This file implements the client credentials grant (RFC 6749, section 4.4) without golang.org/x/oauth2. That parses responses by their
// Content-Type and expires_in only as an integer, asks twice after every refusal, and does not wait.

// ClientCredentials configures the tokens from an OAuth 2.0 server.
type ClientCredentials struct {
	TokenURL string
	ClientID string
	Secret   program.Credential
	Scopes   []string
	Audience string
	// Early is how long before its expiry a token is replaced.
	Early time.Duration
	// Timeout bounds one request for a token, including its response.
	Timeout time.Duration
	// Reported, if not nil, is called when the endpoint first gives no token, and with nil when it gives one again.
	Reported func(err error)
}

// Bounds of the retries at a token endpoint that gave no token.
const (
	// firstWait is the first wait if the endpoint does not specify one. It doubles up to longestWait, and each wait is up to half as long
	// again, so that pods do not ask together.
	firstWait   = time.Second
	longestWait = time.Minute
	// deniedWait is the wait after a permanent refusal, such as invalid_client, until the secret's file changes.
	deniedWait = time.Minute
	// mostTold is the longest wait that is accepted from the endpoint.
	mostReported = 5 * time.Minute
	// leastRenewal keeps a service that refuses every token from causing a request for a token with each call.
	leastRenewal = 10 * time.Second
	// maxTokenAnswer bounds the size of a response, in bytes.
	maxTokenAnswer = 1 << 20
)

// OAuth2 logs in with a token of the client credentials grant. It keeps a token until shortly before its expiry, and replaces it when the
// service refuses it. A token that cannot be replaced is used until it expires. While the endpoint gives none, it is asked as rarely as it
// says, by one request for all. base sends the requests for tokens, which no limit includes.
func OAuth2(c ClientCredentials, base http.RoundTripper) *TokenLogin {
	e := &endpoint{credentials: c, client: newTokenClient(base, c.Timeout)}
	return &TokenLogin{early: c.Early, fetch: e.fetch, secret: c.Secret, reported: c.Reported}
}

// newTokenClient returns a client for a token endpoint, which follows no redirects.
func newTokenClient(base http.RoundTripper, timeout time.Duration) *http.Client {
	return &http.Client{
		Transport: base, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// An endpoint requests tokens. It is used by one goroutine at a time.
type endpoint struct {
	credentials ClientCredentials
	client      *http.Client
	inBody      bool // the client's ID and secret are in the body, not in a header
}

// fetch requests a token with a secret. It tries both ways to send it if the first is not accepted.
func (e *endpoint) fetch(secret string) (*token, *refusal) {
	t, refused := e.ask(secret)
	if refused == nil || refused.status != http.StatusUnauthorized && refused.code != "invalid_client" {
		return t, refused
	}
	e.inBody = !e.inBody
	t, again := e.ask(secret)
	if again != nil {
		e.inBody = !e.inBody
		if again.status != http.StatusUnauthorized && again.status != http.StatusBadRequest {
			return nil, again // such as for too many requests
		}
		return nil, refused
	}
	return t, nil
}

// ask makes one request.
func (e *endpoint) ask(secret string) (*token, *refusal) {
	c := e.credentials
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(c.Scopes) > 0 {
		form.Set("scope", strings.Join(c.Scopes, " "))
	}
	if c.Audience != "" {
		form.Set("audience", c.Audience)
	}
	if e.inBody {
		form.Set("client_id", c.ClientID)
		form.Set("client_secret", secret)
	}
	return postForm(e.client, c.TokenURL, form, func(req *http.Request) {
		if !e.inBody {
			req.SetBasicAuth(url.QueryEscape(c.ClientID), url.QueryEscape(secret))
		}
	})
}

// postForm makes one request to a token endpoint. login may be nil.
func postForm(client *http.Client, to string, form url.Values, login func(*http.Request)) (*token, *refusal) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, &refusal{err: err}
	}
	req.GetBody = nil // sent once
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if login != nil {
		login(req)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, &refusal{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxTokenAnswer))
	now := time.Now()
	t, code, bad := parseToken(body, now)
	if res.StatusCode < 300 && bad == nil && err == nil {
		return t, nil
	}
	if bad == nil {
		bad = errNoToken
	}
	r := &refusal{status: res.StatusCode, code: code, err: bad}
	r.after, _, _ = httpthrottle.Answer{Status: res.StatusCode, Header: res.Header, Body: body, At: now}.RetryAfter()
	return nil, r
}

// A TokenLogin is the Login of OAuth2 and of a JWT.
type TokenLogin struct {
	fetch    func(secret string) (*token, *refusal)
	early    time.Duration
	secret   program.Credential
	reported func(error)

	mu      sync.Mutex
	token   *token        // nil: there is none
	replace time.Time     // when to fetch the next one; zero: when it is refused
	busy    chan struct{} // closed when the fetch under way has ended; nil: none
	renewed time.Time     // when one was last discarded

	failed *refusal  // of the last fetch; nil: it gave a token
	row    int       // consecutive failures of fetches
	again  time.Time // when to ask the endpoint again
	shown  string    // the refused secret, which is compared with that in the file
}

// Await returns when there is a token to send, and fetches it if necessary. While the endpoint gives none, it waits until the next request,
// if that is within patience; otherwise it returns a *TokenError at once. Other errors are the cause of ctx.
func (l *TokenLogin) Await(ctx context.Context, patience time.Duration) error {
	if l == nil {
		return nil
	}
	end := time.Now().Add(patience)
	for {
		_, err := l.get(ctx)
		missing, ok := errors.AsType[*TokenError](err)
		if !ok {
			return err
		}
		if !time.Now().Add(missing.RetryAfter).Before(end) {
			return err
		}
		timer := time.NewTimer(missing.RetryAfter)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// Set implements Login.
func (l *TokenLogin) Set(h http.Header) error {
	t, err := l.get(context.Background())
	if err != nil {
		return err
	}
	h.Set(authorization, t.header())
	return nil
}

// get returns a token. One caller fetches it. The others use the previous one while it is valid, and otherwise wait for that fetch.
func (l *TokenLogin) get(ctx context.Context) (*token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		now := time.Now()
		good := l.good(now)
		switch {
		case good && (l.busy != nil || l.replace.IsZero() || now.Before(l.replace) || l.pausing(now)):
			return l.token, nil
		case l.busy == nil && l.pausing(now):
			return nil, &TokenError{why: l.failed.Error(), RetryAfter: l.again.Sub(now)}
		case l.busy == nil:
			l.renew()
		default:
			busy := l.busy
			l.mu.Unlock()
			select {
			case <-busy:
			case <-ctx.Done():
				l.mu.Lock()
				return nil, context.Cause(ctx)
			}
			l.mu.Lock()
		}
	}
}

// good reports whether there is a token that has not expired. l.mu is held.
func (l *TokenLogin) good(now time.Time) bool {
	return l.token != nil && (l.token.expiry.IsZero() || now.Before(l.token.expiry))
}

// pausing reports whether to leave the endpoint alone. An endpoint that has denied the secret is asked at once when its file has another.
// l.mu is held.
func (l *TokenLogin) pausing(now time.Time) bool {
	if l.failed == nil || !now.Before(l.again) {
		return false
	}
	if !l.failed.denied() || l.secret.File == "" {
		return true
	}
	text, err := l.secret.Read()
	return err != nil || text == l.shown
}

// renew fetches a token. l.mu is held, except during the fetch.
func (l *TokenLogin) renew() {
	l.busy = make(chan struct{})
	l.mu.Unlock()
	began := time.Now()
	secret, err := l.secret.Read()
	var t *token
	refused := &refusal{err: err, unread: true}
	if err == nil {
		t, refused = l.fetch(secret)
	}
	l.mu.Lock()
	close(l.busy)
	l.busy = nil
	before := l.failed
	l.failed, l.shown = refused, secret
	if refused != nil {
		l.again = time.Now().Add(l.wait(refused))
		l.row++
		if before == nil || before.Error() != refused.Error() {
			l.tell(&TokenError{why: refused.Error()})
		}
		return
	}
	l.row = 0
	l.token, l.replace = t, time.Time{}
	if !t.expiry.IsZero() {
		l.replace = t.expiry.Add(-min(l.early, t.expiry.Sub(began)/2))
	}
	if before != nil {
		l.tell(nil)
	}
}

func (l *TokenLogin) tell(err error) {
	if l.reported != nil {
		l.reported(err)
	}
}

// wait returns how long to leave the endpoint alone after a refusal. l.mu is held.
func (l *TokenLogin) wait(r *refusal) time.Duration {
	const doublings = 6
	switch {
	case r.after > 0:
		d := min(r.after, mostReported)
		return d + rand.N(d/10+1) // never earlier than it says
	case r.denied():
		return deniedWait + rand.N(deniedWait/10)
	}
	d := min(firstWait<<min(l.row, doublings), longestWait)
	return d + rand.N(d/2)
}

// Refused implements Login.
func (l *TokenLogin) Refused(h http.Header) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token != nil && h.Get(authorization) != l.token.header() {
		return true // there is a newer one already
	}
	if time.Since(l.renewed) < leastRenewal {
		return false
	}
	l.renewed, l.token = time.Now(), nil
	return true
}
