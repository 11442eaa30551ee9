package calls

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// A call is a request of a scenario, and its result, or other work that ends with one.
type call struct {
	req   *http.Request // nil: other work
	sent  http.Header   // as the caller made it
	text  string        // of the request
	body  *source       // nil: none
	began time.Time
	stop  context.CancelCauseFunc
	keeps bool // the body of the answer stays open
	far   bool // its client has a connection
	done  chan struct{}

	// What became of it, when done is closed.
	res  *http.Response
	err  error
	took time.Duration // until its answer
	got  string        // the text of the answer, or the result
	read error         // with which that ended
}

// callKey finds the call of an attempt in the context of its request.
type callKey struct{}

// Secret is in each request. No error and no log may have it.
const Secret = "sesame"

// callHeader tells the service which call sent an attempt over a connection.
const callHeader = "Call"

// task returns a new call without a request, and its context.
func (o *Order) task() (*call, context.Context) {
	c, ctx := &call{began: time.Now(), done: make(chan struct{})}, context.Background()
	if d := o.Value("within"); d != "" {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, o.Time(d))
		o.T.Cleanup(cancel)
	}
	ctx, c.stop = context.WithCancelCause(ctx)
	name := o.Value("as")
	o.calls[name], o.all = append(o.calls[name], c), append(o.all, c)
	return c, ctx
}

// newCall makes a call of the words of an order, through a transport.
func (o *Order) newCall(through http.RoundTripper) *call {
	c, ctx := o.task()
	c.keeps, c.text = o.Is("open"), o.Unquoted(o.Value("body"))
	_, c.far = through.(*http.Transport)
	again, gone, length, size := !o.Is("once"), o.Is("gone"), o.Value("length"), int(o.Number(o.Value("size")))
	if c.text += strings.Repeat("x", size); c.text != "" || !again {
		c.body = &source{Reader: strings.NewReader(c.text), every: o.Time(o.Value("every"))}
	}
	if o.Is("unreadable") {
		c.body, c.text = &source{Reader: iotest.ErrReader(errBroken)}, ""
	}
	if o.Is("ended") {
		c.stop(errGone)
	}
	tag := strings.ReplaceAll(o.Value("tag"), "*", strconv.Itoa(len(o.all)))
	method := http.MethodGet
	if c.body != nil {
		method = http.MethodPost
	}
	url := cmp.Or(o.Value("path"), "/v1/chat?key="+Secret)
	if strings.HasPrefix(url, "/") {
		url = "http://service.test" + url
	}
	req, err := http.NewRequestWithContext(context.WithValue(ctx, callKey{}, c), o.Word(method), url, nil)
	require.NoError(o.T, err, o.Line)
	req.Header.Set("Authorization", "Bearer "+Secret)
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
		req.Header.Set("Tag", o.Unquoted(tag))
	}
	if c.far {
		number := strconv.Itoa(len(o.all))
		req.Header.Set(callHeader, number)
		o.service.know(number, c)
	}
	o.headers(req.Header)
	req.Host = req.Header.Get("Host")
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
	case c.req == nil:
		return ""
	case c.err != nil && (c.res != nil || strings.Contains(c.err.Error(), Secret)):
		return "an error beside a response, or with a secret"
	case c.res != nil && c.res.Request != c.req:
		return "the response is that of another request"
	case !sameHeader(c.sent, c.req.Header), c.body != nil && c.req.Body != c.body:
		return "the caller's request has changed"
	case c.body != nil && !c.body.isClosed():
		return "the request's body is open"
	case c.fault("reason") != "":
		return map[bool]string{true: "an answer with a secret"}[strings.Contains(c.got, Secret)]
	case c.res == nil || last == nil:
		return ""
	case c.far && last.answer != nil:
		return c.judgeFar(last)
	}
	return c.judgeNear(last)
}

// judgeNear is judge for the answer of a transport.
func (c *call) judgeNear(last *attempt) string {
	switch {
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

// judgeFar is judge for the answer that came over a connection, which adds headers and has its own errors.
func (c *call) judgeFar(last *attempt) string {
	for name, values := range last.given.header {
		if !slices.Equal(c.res.Header[name], values) {
			return "the answer has another " + name
		}
	}
	if !c.keeps && (c.got != last.answer.text || (c.read == nil) != errors.Is(last.answer.end, io.EOF)) {
		return "the caller has not had the whole answer"
	}
	return ""
}

// fault returns a field of the error in an answer in JSON; empty for none.
func (c *call) fault(field string) string {
	var in struct {
		Error map[string]any `json:"error"`
	}
	if json.Unmarshal([]byte(c.got), &in) != nil || in.Error[field] == nil {
		return ""
	}
	return fmt.Sprint(in.Error[field])
}

func sameHeader(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }
