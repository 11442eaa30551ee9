package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// newClient returns the client of the provider, which sends through base; nil is a
// transport of its own. Each of its calls draws from l what withCost says, once: calls that are refused or fail are repeated by the caller, who can
// go on for as long as the message may wait.
func newClient(s *settings, l throttle.Limiter, base http.RoundTripper) *openai.Client {
	p := providers[s.Provider]
	opts := []httpthrottle.Option{
		httpthrottle.WithCost(costOf),
		httpthrottle.WithClassifier(p.classify),
		httpthrottle.WithMaxAttempts(1),
		httpthrottle.WithMaxWait(longestPause),
		httpthrottle.RefusalsAsErrors(),
	}
	if s.Charge.settles() {
		opts = append(opts, httpthrottle.WithMeter(httpthrottle.UsageMeter(nil))) //nolint:bodyclose // it is handed a response, and makes none
	}
	if base == nil {
		base = newBase()
	}
	// The time limit is of the attempt alone: below the throttle, which waits.
	base = &attempt{base: base, timeout: s.Timeout, login: p.login, key: s.key}
	c := openai.DefaultConfig("") // attempt logs in
	c.BaseURL = s.BaseURL
	c.HTTPClient = &http.Client{
		Transport:     httpthrottle.NewTransport(base, l, opts...),
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
	}
	if s.Provider == azure {
		c.APIType, c.APIVersion = openai.APITypeAzure, s.APIVersion
		c.AzureModelMapperFunc = func(model string) string { return model }
	}
	return openai.NewClientWithConfig(c)
}

// newBase returns a transport for many calls to one host.
func newBase() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 256
	return t
}

// longestPause is how long a call waits within the transport for the end of a pause.
const longestPause = time.Hour

// errRedirected: a redirect could carry prompts elsewhere.
var errRedirected = errors.New("the endpoint redirects, which is not followed; set baseURL to where it leads")

type costKey struct{}

// withCost says what the call of a context draws, in tokens.
func withCost(ctx context.Context, tokens int) context.Context {
	return context.WithValue(ctx, costKey{}, tokens)
}

func costOf(r *http.Request) int {
	tokens, _ := r.Context().Value(costKey{}).(int)
	return max(tokens, 1) // one request and one slot in any case
}

// key returns the key of the endpoint; empty for none.
func (s *settings) key() (string, error) {
	if s.APIKeyFile == "" {
		return s.APIKey.Reveal(), nil
	}
	return readKey(s.APIKeyFile)
}

// readKey reads a key from a file, by the rule for all secrets: one line end behind it does not count. The error does
// not hold what is in the file.
func readKey(file string) (string, error) {
	key, err := config.ReadSecretFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	if problem := config.HeaderProblem(key); problem != "" {
		return "", fmt.Errorf("names %s, which %s", file, problem)
	}
	return key, nil
}

// An attempt logs a request in, and bounds how long it takes.
type attempt struct {
	base    http.RoundTripper
	timeout time.Duration
	login   func(h http.Header, key string)
	key     func() (string, error)
}

// errTimeout is why an attempt ended.
var errTimeout = errors.New("the call took longer than the setting timeout allows")

// RoundTrip implements http.RoundTripper.
func (a *attempt) RoundTrip(req *http.Request) (*http.Response, error) {
	begun := begin(req.Context())
	key, err := a.key() // anew each time: a changed Secret needs no restart
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("apiKeyFile %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(begun, a.timeout, errTimeout)
	req = req.Clone(ctx)
	if key != "" {
		a.login(req.Header, key)
	}
	res, err := a.base.RoundTrip(req)
	if err != nil {
		if errors.Is(context.Cause(ctx), errTimeout) {
			err = errTimeout
		}
		cancel()
		return nil, err
	}
	res.Body = &answerBody{ReadCloser: res.Body, ctx: ctx, end: cancel, left: maxAnswer}
	return res, nil
}

// maxAnswer is the longest answer that is read, in bytes.
const maxAnswer = 4 << 20

var errTooLong = fmt.Errorf("the answer is longer than %d bytes", maxAnswer)

// An answerBody is read for as long as an attempt may take, and no further than maxAnswer.
type answerBody struct {
	io.ReadCloser

	ctx  context.Context //nolint:containedctx // the attempt's own, which ends with the body
	end  func()
	left int64
}

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return 0, errTooLong
	case err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(b.ctx), errTimeout):
		return n, errTimeout
	}
	return n, err
}

// Close implements io.Closer.
func (b *answerBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
