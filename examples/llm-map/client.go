package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/callmeter"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/redact"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A client makes calls to one endpoint. It is safe for concurrent use.
type client struct {
	http     *http.Client
	url      string
	header   http.Header
	template *chat.Template
	meters   callmeter.Meters // of the limits; nil: nobody measures
}

// newClient returns the client of valid settings, whose calls draw from l, a limiter of limits; base is as in newTransport.
func newClient(s *settings, limits *account.Limits, l throttle.Limiter, base http.RoundTripper, log *slog.Logger,
	opts ...httpthrottle.Option,
) (*client, error) {
	template, err := s.template()
	if err != nil {
		return nil, err
	}
	header, _ := config.ParseHeaders(s.Headers)
	header.Set("Content-Type", "application/json")
	if header.Get("Accept") == "" {
		header.Set("Accept", "application/json")
	}
	if s.API == chat.Messages && header.Get("Anthropic-Version") == "" {
		header.Set("Anthropic-Version", anthropicVersion)
	}
	return &client{
		http: &http.Client{
			Transport:     newTransport(s, limits, l, base, log, opts...),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url: s.endpoint(), header: header, template: template, meters: hook.Meters(l),
	}, nil
}

// An unsentError is the error of a call that was not sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return "the call was not sent: " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// A statusError is the error of a response with an error status.
type statusError struct {
	status int
	fault  *chat.Fault
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the endpoint answered with status %d: %v", e.status, e.fault)
}

// A hiddenError is a refusal in a response with a success status.
type hiddenError struct {
	status  int
	refusal httpthrottle.Refusal
	fault   *chat.Fault
}

func (e *hiddenError) Error() string {
	return fmt.Sprintf("the endpoint answered with status %d, and with a refusal: %v", e.status, e.fault)
}

// A cutError is the error of an incomplete response.
type cutError struct{ err error }

func (e *cutError) Error() string { return "the answer could not be read: " + e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

// body returns the body of a request.
func (c *client) body(q question) ([]byte, error) {
	if q.texts != nil {
		return c.template.Texts(q.texts)
	}
	return c.template.Body(q.messages)
}

// read reads the body of a response with a success status.
func read(body []byte, contentType string, q question) (chat.Answer, error) {
	if q.texts != nil {
		return chat.ReadVectors(body, contentType, len(q.texts))
	}
	return chat.Read(body, contentType)
}

// complete makes one call, which draws for of and for the tag of ctx. Errors: those of the transport, *unsentError, *statusError,
// *hiddenError, *cutError (with the usage so far), errRedirected and *chat.Fault. Their texts contain nothing from the provider.
func (c *client) complete(ctx context.Context, of *account.Call, q question) (chat.Answer, error) {
	body, err := c.body(q)
	if err != nil {
		return chat.Answer{}, &unsentError{err}
	}
	d := &draw{}
	defer func() {
		if d.tried {
			c.meters.Ran(time.Since(d.began))
		}
	}()
	ctx = account.WithCall(ctx, of)
	req, err := http.NewRequestWithContext(context.WithValue(ctx, drawKey{}, d), http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return chat.Answer{}, &unsentError{err}
	}
	req.GetBody = nil // the draw is for one request
	req.Header = c.header.Clone()
	res, err := c.http.Do(req)
	if err != nil {
		if !d.tried {
			err = &unsentError{err}
		}
		return chat.Answer{}, hush(err, c.redactor(d.key))
	}
	defer res.Body.Close()
	if res.StatusCode/100 == 3 && res.Header.Get("Location") != "" {
		return chat.Answer{}, errRedirected
	}
	content, err := io.ReadAll(res.Body)
	kind := res.Header.Get("Content-Type")
	if res.StatusCode >= http.StatusMultipleChoices {
		f := chat.ReadError(content)
		hide(f, c.redactor(d.key))
		return chat.Answer{}, &statusError{status: res.StatusCode, fault: f}
	}
	if err != nil {
		return chat.Answer{Usage: chat.UsedAtLeast(content, kind)}, &cutError{hush(err, c.redactor(d.key))}
	}
	answer, err := read(content, kind, q)
	f, isFault := errors.AsType[*chat.Fault](err)
	if !isFault {
		return answer, err
	}
	secrets := c.redactor(d.key)
	hide(f, secrets)
	if f.Kind == chat.Provider {
		return chat.Answer{}, inBody(res, f, secrets)
	}
	return chat.Answer{}, f
}

// inBody returns the error of a response whose body is an error, by the status that it names or implies.
func inBody(res *http.Response, f *chat.Fault, secrets *redact.Redactor) error {
	status := cmp.Or(f.Status, http.StatusInternalServerError)
	r, refused := httpthrottle.OpenAI(httpthrottle.Answer{Status: status, Header: res.Header, Body: f.Body, At: time.Now()})
	if !refused {
		return f
	}
	r.Status, r.Code, r.Dimension = status, secrets.Word(r.Code), secrets.Word(r.Dimension)
	return &hiddenError{status: res.StatusCode, refusal: r, fault: f}
}
