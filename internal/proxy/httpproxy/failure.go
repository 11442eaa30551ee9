package httpproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"regexp"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/redact"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// failed answers a request without a response from its service.
func (p *handler) failed(w http.ResponseWriter, r *http.Request, err error) {
	p.failedCall(w, r, callOf(r.Context()), err)
}

// failedCall is failed for a request with a known call c.
func (p *handler) failedCall(w http.ResponseWriter, r *http.Request, c call, err error) {
	if c.isLate(err) {
		err = proxy.LateError("the body")
	} else if r.Context().Err() != nil {
		err = proxy.GoneError() // or it has only ended its side: without an answer it would read 200
	}
	e := answerFor(err)
	if e.Tag == "" {
		e.Tag = c.tag
	}
	if e.Reason == proxy.Upstream || e.Reason == proxy.Internal {
		p.Logger.WarnContext(r.Context(), "a request got no answer from its service", "error", redact.Request(r).Text(loggable(err)))
	}
	closeUnread(w, c.body)
	e.Write(w)
}

// quoted matches the text that net/http quotes in its errors: unreadable lines of a response.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// loggable returns an error without the service's data. It names hosts, but neither URLs nor headers.
func loggable(err error) string {
	what := err.Error()
	if line, ok := errors.AsType[textproto.ProtocolError](err); ok {
		what = strings.ReplaceAll(what, string(line), "the head of the answer cannot be read")
	}
	return quoted.ReplaceAllString(what, "(not shown)")
}

// answerFor returns the response to a client for an error. Details from the service's side go to the log.
func answerFor(err error) *proxy.Error {
	var (
		tooLong *http.MaxBytesError
		own     *proxy.Error
		denied  *throttle.Error
		broken  *brokenError
		timeout net.Error
	)
	if refused := accessProblem(err); refused != nil {
		return refused
	}
	switch {
	case errors.As(err, &tooLong):
		return proxy.NewError(http.StatusRequestEntityTooLarge, proxy.TooLong,
			fmt.Sprintf("the body is longer than %d bytes, which is the most (maxBody)", tooLong.Limit))
	case errors.As(err, &own):
		return own
	case errors.As(err, &broken):
		return proxy.NewError(http.StatusBadRequest, proxy.BadRequest, "the body cannot be read, allowed: as many bytes as Content-Length says, or chunks")
	case errors.As(err, &denied), errors.Is(err, throttle.ErrClosed):
		return proxy.ErrorOf(err)
	case errors.Is(err, httpthrottle.ErrUnanswered):
		return proxy.NewError(http.StatusBadGateway, proxy.Upstream,
			"the request was sent, and its connection ended before an answer; the service may have acted on it")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return proxy.NewError(http.StatusGatewayTimeout, proxy.Upstream, "the service did not answer in time; it may have acted on the request")
	}
	return proxy.NewError(http.StatusBadGateway, proxy.Upstream, "the service cannot be reached, or has ended the connection; the proxy's log says why")
}
