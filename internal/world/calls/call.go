package calls

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// A call is a request of a scenario, and its result.
type call struct {
	req   *http.Request
	sent  http.Header // as the caller made it
	text  string      // of the request
	body  *source     // nil: none
	began time.Time
	stop  context.CancelCauseFunc
	keeps bool // the body of the answer stays open
	done  chan struct{}

	// What became of it, when done is closed.
	res  *http.Response
	err  error
	took time.Duration // until its answer
	got  string        // the text of the answer
	read error         // with which that ended
}

// callKey finds the call of an attempt in the context of its request.
type callKey struct{}

// newCall makes a call of the words of an order.
func (o *order) newCall() *call {
	c := &call{began: time.Now(), keeps: o.Is("open"), done: make(chan struct{}), text: o.Value("body")}
	again, gone, length, size := !o.Is("once"), o.Is("gone"), o.Value("length"), int(o.Number(o.Value("size")))
	if c.text += strings.Repeat("x", size); c.text != "" || !again {
		c.body = &source{Reader: strings.NewReader(c.text)}
	}
	if o.Is("unreadable") {
		c.body, c.text = &source{Reader: iotest.ErrReader(errBroken)}, ""
	}
	ctx := context.WithValue(context.Background(), callKey{}, c)
	if d := o.Value("within"); d != "" {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, o.Time(d))
		o.T.Cleanup(cancel)
	}
	if ctx, c.stop = context.WithCancelCause(ctx); o.Is("ended") {
		c.stop(errGone)
	}
	tag := strings.ReplaceAll(o.Value("tag"), "*", "t"+strings.Repeat("t", len(o.all)))
	method := http.MethodGet
	if c.body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, o.Word(method), "http://service.test/v1/chat?key=sesame", nil)
	require.NoError(o.T, err, o.Line)
	req.Header.Set("Authorization", "Bearer sesame")
	if c.body != nil {
		req.Body, req.ContentLength = c.body, int64(len(c.text))
		if length != "" {
			req.ContentLength = int64(o.Number(length))
		}
		if again {
			req.GetBody = func() (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(c.text)), map[bool]error{true: errGone}[gone]
			}
		}
	}
	if tag != "" {
		req.Header.Set("Tag", tag)
	}
	for name, value := range o.Set {
		req.Header.Set(name, value)
	}
	clear(o.Set)
	c.req, c.sent = req, maps.Clone(req.Header)
	return c
}

// do makes the call through a transport. It reads the answer unless it keeps that open.
func (c *call) do(tr http.RoundTripper) {
	defer close(c.done)
	c.res, c.err = tr.RoundTrip(c.req) //nolint:bodyclose // End closes what is still open
	if c.took = time.Since(c.began); c.res != nil && !c.keeps {
		c.take(-1)
		c.close()
	}
}

// take reads bytes of the answer, or all.
func (c *call) take(n int) {
	if c.res.Body == nil {
		return
	}
	var data []byte
	if n < 0 {
		data, c.read = io.ReadAll(c.res.Body)
	} else {
		data = make([]byte, n)
		_, c.read = io.ReadFull(c.res.Body, data)
	}
	c.got += string(data)
}

func (c *call) close() {
	if c.res.Body != nil {
		_ = c.res.Body.Close()
	}
}

// isOver reports whether the call has its result.
func (c *call) isOver() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// judge returns a fault of the transport's; last is the call's last attempt, nil without one.
func (c *call) judge(last *attempt) string {
	switch {
	case c.err != nil && (c.res != nil || strings.Contains(c.err.Error(), "sesame")):
		return "an error beside a response, or with a secret"
	case c.res != nil && c.res.Request != c.req:
		return "the response is that of another request"
	case !sameHeader(c.sent, c.req.Header), c.body != nil && c.req.Body != c.body:
		return "the caller's request has changed"
	case c.body != nil && !c.body.isClosed():
		return "the request's body is open"
	case c.res == nil || last == nil:
		return ""
	case !sameHeader(last.given.header, c.res.Header):
		return "the answer has other headers"
	case last.answer == nil:
		return map[bool]string{true: "there is a body"}[c.res.Body != last.given.bodiless()]
	case c.keeps:
		return ""
	case c.got != last.answer.text, !errors.Is(last.answer.end, io.EOF) && !errors.Is(c.read, last.answer.end):
		return "the caller has not had the whole answer"
	}
	return ""
}

func sameHeader(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }
