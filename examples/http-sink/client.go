package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/outbound"
	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A call is one request with all its attempts.
type call struct {
	url         string
	header      http.Header
	body        []byte // as sent
	plain       []byte // before compression
	id          string // stable over attempts and over deliveries
	destination string
	cost        int
}

// A result is the last response to a call.
type result struct {
	class      class
	status     int // 0: there was none
	body       []byte
	complete   bool // body is all of it
	retryAfter time.Duration
	err        error // why there was no response; without secrets and message data
}

// A client makes calls. It is safe for concurrent use.
type client struct {
	settings *settings
	table    statusTable
	http     *http.Client
	breakers *outbound.Breakers
	tokens   *outbound.TokenLogin // nil: none are needed
}

type callKey struct{}

func callOf(req *http.Request) *call {
	c, _ := req.Context().Value(callKey{}).(*call)
	return c
}

func destinationOf(req *http.Request) string { return callOf(req).destination }

// newClient returns a client of valid settings, whose attempts draw from l.
func newClient(s *settings, l throttle.Limiter, m *meters, log *slog.Logger) (*client, error) {
	for _, secret := range s.credentials() {
		secret.Follow(secret.key, secret.inHeader, log)
	}
	c := &client{settings: s}
	var err error
	if c.table, err = parseStatuses(s.Statuses); err != nil {
		return nil, err
	}
	connection := outbound.Connection{
		Dial: s.DialTimeout, TLS: s.TLSTimeout, Header: s.HeaderTimeout,
		CAFile: s.CAFile, CertFile: s.CertFile, KeyFile: s.KeyFile, Log: log, Idle: s.Concurrency,
		PingAfter: s.PingAfter, PingTimeout: s.PingTimeout,
	}
	if connection.Allow, err = dialguard.ParseAddresses(s.AllowAddresses); err != nil {
		return nil, err
	}
	if s.Proxy != "" {
		if connection.Proxy, err = url.Parse(s.Proxy); err != nil {
			return nil, err
		}
	}
	base := s.base
	if base == nil {
		if base, err = outbound.NewTransport(connection); err != nil {
			return nil, err
		}
	}
	c.tokens = s.tokens(base, log)
	attempt := &outbound.Attempt{
		Base: base, Timeout: s.Timeout, Login: s.login(c.tokens), Signer: s.requestSigner(),
		ID:   func(req *http.Request) string { return callOf(req).id },
		Body: func(req *http.Request) []byte { return callOf(req).body },
	}
	if dump := s.dump(log); dump != nil {
		attempt.Sent = func(req *http.Request) { dump.Sent(req, callOf(req).plain) }
	}
	if s.BreakerFailures > 0 {
		c.breakers = outbound.NewBreakers(s.BreakerFailures, s.BreakerOpen, s.Destinations, m.breaker)
	}
	guarded := c.breakers.Guard(m.attempts(attempt), destinationOf, func(res *http.Response) (failed, counts bool) {
		class := c.table.Of(httpthrottle.Answer{Status: res.StatusCode, Header: res.Header, At: time.Now()})
		if noToken, ok := errors.AsType[*outbound.TokenError](outbound.FailureOf(res)); ok && noToken != nil {
			return false, false // it says nothing about the service
		}
		return res.StatusCode == 0 || class == classRetry, class != classWait
	})
	opts := []httpthrottle.Option{
		httpthrottle.WithCost(func(req *http.Request) int { return callOf(req).cost }),
		httpthrottle.WithTag(destinationOf),
		httpthrottle.WithClassifier(c.classify),
		httpthrottle.WithMaxAttempts(s.MaxAttempts),
		httpthrottle.WithMaxWait(s.MaxWait),
		httpthrottle.WithMaxElapsed(s.MaxElapsed),
		httpthrottle.WithMaxPause(s.MaxPause),
		httpthrottle.WithLogger(log),
	}
	if !s.NoIdempotencyKey {
		opts = append(opts, httpthrottle.WithIdempotencyKey(func(req *http.Request) string { return callOf(req).id }))
	}
	if err := httpthrottle.Check(opts...); err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: httpthrottle.NewTransport(guarded, l, opts...), CheckRedirect: s.checkRedirect}
	return c, nil
}

// login returns the login of requests; nil for none.
func (s *settings) login(tokens *outbound.TokenLogin) outbound.Login {
	var all logins
	if s.BasicUsername != "" {
		all = append(all, outbound.Basic(s.BasicUsername, s.BasicPassword))
	}
	if s.BearerToken.IsSet() {
		all = append(all, outbound.Bearer(s.BearerToken))
	}
	if s.APIKey.IsSet() {
		all = append(all, outbound.Header(s.APIKeyHeader, s.APIKey))
	}
	if tokens != nil {
		all = append(all, tokens)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// tokens returns the login with tokens; nil for none.
func (s *settings) tokens(base http.RoundTripper, log *slog.Logger) *outbound.TokenLogin {
	if s.JWTKeyFile != "" {
		return s.jwt(log).Login(base)
	}
	if s.OAuthTokenURL == "" {
		return nil
	}
	return outbound.OAuth2(outbound.ClientCredentials{
		TokenURL: s.OAuthTokenURL, ClientID: s.OAuthClientID, Secret: s.OAuthSecret, Scopes: strings.Fields(s.OAuthScopes),
		Audience: s.OAuthAudience, Early: s.OAuthRefreshBefore, Timeout: s.Timeout,
		Reported: reportedOfTokens(log),
	}, base)
}

// jwt returns the configuration of the JWT for logins.
func (s *settings) jwt(log *slog.Logger) outbound.JWT {
	key := program.Credential{File: s.JWTKeyFile, Lines: true}
	if log != nil {
		key.Follow("jwtKey", false, log)
	}
	return outbound.JWT{
		Key: key, KeyID: s.JWTKeyID, Issuer: s.JWTIssuer, Subject: s.JWTSubject,
		Audience: cmp.Or(s.JWTAudience, s.JWTTokenURL), Scopes: strings.Fields(s.JWTScopes), Claims: s.JWTClaims,
		Lifetime: cmp.Or(s.JWTLifetime, defaultJWTLifetime), TokenURL: s.JWTTokenURL, Timeout: s.Timeout, Reported: reportedOfTokens(log),
	}
}

const defaultJWTLifetime = 5 * time.Minute

// toldOfTokens logs when there is no token, and when there is one again.
func reportedOfTokens(log *slog.Logger) func(error) {
	return func(err error) {
		if err != nil {
			log.Error("messages wait for a token, which they do not get", "error", err)
			return
		}
		log.Info("there are tokens again")
	}
}

// logins are several logins used together, such as a key beside another login.
type logins []outbound.Login

// Set implements outbound.Login.
func (l logins) Set(h http.Header) error {
	for _, one := range l {
		if err := one.Set(h); err != nil {
			return err
		}
	}
	return nil
}

// Refused implements outbound.Login.
func (l logins) Refused(h http.Header) bool {
	renewed := false
	for _, one := range l {
		renewed = one.Refused(h) || renewed
	}
	return renewed
}

// requestSigner returns the signer of requests; nil for none.
func (s *settings) requestSigner() outbound.RequestSigner {
	if s.Signature == awsSignature {
		return &outbound.SigV4{
			Region: s.AWSRegion, Service: s.AWSService, AccessKeyID: s.AWSAccessKeyID, SecretKey: s.AWSSecretKey, SessionToken: s.AWSSessionToken,
		}
	}
	if signer := s.signer(); signer != nil {
		return signer
	}
	return nil
}

// signer returns the signer of bodies; nil for none.
func (s *settings) signer() *outbound.Signer {
	switch s.Signature {
	case sha256Signature:
		return &outbound.Signer{Key: s.SignatureKey, Header: cmp.Or(s.SignatureHeader, defaultSignatureHeader)}
	case standardWebhooks:
		return &outbound.Signer{Key: s.SignatureKey}
	case noSignature, awsSignature:
	}
	return nil
}

const defaultSignatureHeader = "X-Signature-256"

// mostRedirects is how many are followed.
const mostRedirects = 5

// checkRedirect is http.Client.CheckRedirect. A redirect that is not followed is the response.
func (s *settings) checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	status := 0
	if req.Response != nil {
		status = req.Response.StatusCode
	}
	switch {
	case s.Redirects != sameHost, len(via) > mostRedirects,
		req.URL.Scheme != first.Scheme, req.URL.Host != first.Host, req.URL.User != nil,
		// The others turn a POST into a GET, which would pass for a success.
		status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect:
		return http.ErrUseLastResponse
	}
	return nil
}

// classify decides how the transport treats a response.
func (c *client) classify(a httpthrottle.Answer) (httpthrottle.Refusal, bool) {
	r, _ := httpthrottle.Generic(a)
	switch class := c.table.Of(a); {
	case a.Status == 0 && a.Header.Get(outbound.NoRetry) != "":
		return httpthrottle.Refusal{Class: httpthrottle.Stop}, true
	case a.Status == 0:
		return httpthrottle.Refusal{Class: httpthrottle.Overload, NotProcessed: a.Header.Get(outbound.NotSent) != ""}, true
	case a.Header.Get(outbound.Renewed) != "":
		return httpthrottle.Refusal{Class: httpthrottle.Overload, NotProcessed: true, RetryAfter: time.Millisecond}, true
	case class == classWait:
		if r.Class == "" { // a status that Generic does not know
			r.Class = httpthrottle.Wait
			r.RetryAfter, r.Dimension, r.NotProcessed = a.RetryAfter()
		}
		return r, true
	case class == classRetry:
		after, _, _ := a.RetryAfter()
		return httpthrottle.Refusal{Class: httpthrottle.Overload, RetryAfter: after}, true
	}
	return httpthrottle.Refusal{}, false
}

// do makes a call. Errors: those of ctx; those of the limiter: *throttle.Error; *outbound.OpenError; *outbound.TokenError if no token was
// available. The service's response is in the result.
func (c *client) do(ctx context.Context, call *call) (result, error) {
	began := time.Now()
	for attempt := 1; ; attempt++ {
		// Before any draw: a call that cannot log in costs nothing.
		if err := c.tokens.Await(ctx, min(c.settings.MaxWait, c.settings.MaxElapsed-time.Since(began))); err != nil {
			return result{}, err
		}
		res, err := c.once(ctx, call)
		// A token expired under way, or was refused, and could not be replaced at once.
		if _, missing := errors.AsType[*outbound.TokenError](err); !missing || attempt >= c.settings.MaxAttempts {
			return res, err
		}
	}
}

// once is do without the wait for a token.
func (c *client) once(ctx context.Context, call *call) (result, error) {
	if err := c.breakers.Check(call.destination); err != nil {
		return result{}, err
	}
	ctx = context.WithValue(ctx, callKey{}, call)
	req, err := http.NewRequestWithContext(ctx, string(c.settings.Method), call.url, bytes.NewReader(call.body))
	if err != nil {
		return result{}, errInvalidURL
	}
	req.Header = call.header.Clone()
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "numathrottle-http-sink")
	}
	res, err := c.http.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL
		}
		return result{}, err
	}
	return c.read(res)
}

var errInvalidURL = errors.New("the URL cannot be requested")

// read reads the needed part of a response, and closes it.
func (c *client) read(res *http.Response) (result, error) {
	defer res.Body.Close()
	if err := outbound.FailureOf(res); err != nil {
		if open, ok := errors.AsType[*outbound.OpenError](err); ok {
			return result{}, open
		}
		if noToken, ok := errors.AsType[*outbound.TokenError](err); ok {
			return result{}, noToken
		}
		return result{class: classRetry, err: err}, nil
	}
	r := result{status: res.StatusCode}
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(c.settings.MaxResponse)+1))
	// The status has come: a broken body does not change it.
	r.complete = err == nil && len(body) <= c.settings.MaxResponse
	r.body = body[:min(len(body), c.settings.MaxResponse)]
	a := httpthrottle.Answer{Status: res.StatusCode, Header: res.Header, Body: r.body, At: time.Now()}
	r.class = c.table.Of(a)
	r.retryAfter, _, _ = a.RetryAfter()
	return r, nil
}
