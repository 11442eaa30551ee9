package httpthrottle

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// A payload is the body of a request, for all its attempts.
type payload struct {
	// first is the body of the first attempt; nil for none, and when it was handed on.
	first io.ReadCloser
	// again makes the body of a further attempt; nil when it cannot be made.
	again func() (io.ReadCloser, error)
}

// newPayload takes over the body of req, which it reads as far as it has to be
// kept. An error leaves the body closed.
func (s *settings) newPayload(req *http.Request) (payload, error) {
	body := req.Body
	switch {
	case body == nil || body == http.NoBody:
		return payload{first: body, again: func() (io.ReadCloser, error) { return body, nil }}, nil
	case req.GetBody != nil:
		return payload{first: body, again: req.GetBody}, nil
	case s.attempts == 1 || s.buffer == 0 || req.ContentLength > s.buffer || req.ContentLength <= 0 && !s.bufferAll:
		return payload{first: body}, nil
	}
	data, err := io.ReadAll(io.LimitReader(body, s.buffer+1))
	if err != nil {
		_ = body.Close()
		return payload{}, fmt.Errorf("httpthrottle: reading the request's body: %w", err)
	}
	if int64(len(data)) > s.buffer {
		return payload{first: struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(data), body), body}}, nil
	}
	if err := body.Close(); err != nil {
		return payload{}, fmt.Errorf("httpthrottle: closing the request's body: %w", err)
	}
	again := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	first, _ := again()
	return payload{first: first, again: again}, nil
}

// next returns the body of the next attempt, which the base transport closes.
func (p *payload) next(attempt int) (io.ReadCloser, error) {
	if attempt == 1 {
		body := p.first
		p.first = nil
		return body, nil
	}
	body, err := p.again()
	if err != nil {
		return nil, fmt.Errorf("httpthrottle: the request's body for attempt %d: %w", attempt, err)
	}
	return body, nil
}

// close closes a body that was handed to nobody.
func (p *payload) close() {
	if p.first != nil {
		_ = p.first.Close()
	}
}
