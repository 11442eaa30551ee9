package main

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/render"
	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// A handler sends messages over HTTP. It draws from the limits itself, once for each attempt. sinker.Wrap would draw once for each message;
// here repeated attempts count, and a group of messages can count once.
type handler struct {
	settings   *settings
	client     *client
	url        *render.URL
	headers    *render.Headers
	body       *render.Text // nil: the payload as it is
	dest       *render.Text // nil: the host
	forward    []string
	compressor *render.Compressor
	meters     *meters
	slots      chan struct{} // one for each request under way; see seat
	abandoner  admission.Abandoner
	turns      *admission.Admitter // in which denied messages come again
	log        *slog.Logger
}

// newHandler returns the sink of valid settings.
func newHandler(s *settings, c *client, m *meters, log *slog.Logger) (h *handler, err error) {
	h = &handler{
		settings: s, client: c, meters: m, log: log, slots: make(chan struct{}, s.Concurrency),
		forward: strings.Fields(s.ForwardHeaders), abandoner: admission.Abandoner{Log: log},
	}
	if h.url, err = render.ParseURL(s.url); err != nil {
		return nil, err
	}
	if h.headers, err = render.ParseHeaders(s.Headers); err != nil {
		return nil, err
	}
	if s.body != "" {
		if h.body, err = render.ParseText("body", s.body); err != nil {
			return nil, err
		}
	}
	if s.destKey != "" {
		if h.dest, err = render.ParseText("destination", s.destKey); err != nil {
			return nil, err
		}
	}
	h.compressor, err = render.NewCompressor(s.Compression, s.CompressionMin)
	return h, err
}

// A place is the target of a message: messages with the same place can go together.
type place struct {
	url         string
	header      string // its lines
	destination string
}

// A batch is one call of Sink: the platform's messages up to one end of transmission.
type batch struct {
	*handler

	ctx     context.Context //nolint:containedctx // lives as long as the call that it belongs to
	groups  *render.Groups[place, *answer]
	running sync.WaitGroup
	answers []*answer // in the order of the messages

	mu        sync.Mutex
	notStored map[cause]int
}

type group = render.Group[place, *answer]

// An answer is the response to one message.
//
// Invariant: it is given once, by the goroutine that has the message: its reader, or its request's.
type answer struct {
	id       string
	response sinksdk.Response
	given    bool
}

// Sink implements sinksdk.Sinker. It returns exactly one response for each message.
func (h *handler) Sink(ctx context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
	if h.settings.LimitWait > 0 {
		ctx = context.WithValue(ctx, patienceKey{}, &patience{wait: h.settings.LimitWait})
	}
	b := &batch{handler: h, ctx: ctx, groups: render.NewGroups[place, *answer](render.Bounds{
		Messages: h.settings.MaxMessages, Bytes: h.settings.MaxBytes, Age: h.settings.MaxAge,
	}, h.settings.layout())}
	for b.read(in) {
		b.dispatch(b.groups.Due(time.Now()))
	}
	b.dispatch(b.groups.Rest())
	b.running.Wait()
	return b.responses()
}

// read takes the next message, or waits until a group is due. It returns false after the last message: numaflow-go requires all to be read,
// even when the context has ended.
func (b *batch) read(in <-chan sinksdk.Datum) bool {
	var due <-chan time.Time
	if d, ok := b.groups.Next(time.Now()); ok {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case d, more := <-in:
		if more {
			b.dispatch(b.take(d))
		}
		return more
	case <-due:
		return true
	}
}

// take puts a message into a group, or answers it if it cannot be sent. It returns the complete groups.
func (b *batch) take(d sinksdk.Datum) []group {
	a := &answer{id: d.ID()}
	b.answers = append(b.answers, a)
	to, record, err := b.prepare(d)
	if err != nil {
		b.invalid(a, err)
		return nil
	}
	return b.groups.Add(to, a, record, time.Now())
}

// prepare returns the parts of a request for a message. Errors contain nothing of it.
func (h *handler) prepare(d sinksdk.Datum) (to place, record []byte, err error) {
	m := render.NewMessage(d)
	if to.url, err = h.address(m); err != nil {
		return to, nil, err
	}
	header := http.Header{}
	if !h.settings.withoutBody() {
		header.Set("Content-Type", h.settings.ContentType)
	}
	for _, name := range h.forward {
		if value := headerOf(d, name); value != "" && render.ValidHeaderValue(value) {
			header.Set(name, value)
		}
	}
	if err = h.headers.Render(m, header); err != nil {
		return to, nil, err
	}
	to.header = lines(header)
	to.destination = h.url.Host()
	if h.dest != nil {
		if to.destination, err = h.dest.Render(m); err != nil {
			return to, nil, err
		}
		if len(to.destination) > longestName {
			return to, nil, errLongDestination
		}
	}
	if h.settings.withoutBody() {
		return to, nil, nil
	}
	record = d.Value()
	if h.body != nil {
		text, err := h.body.Render(m)
		if err != nil {
			return to, nil, err
		}
		record = []byte(text)
	}
	record, err = h.settings.Format.Record(record)
	return to, record, err
}

// address returns the URL for a message.
func (h *handler) address(m *render.Message) (string, error) {
	to, err := h.url.Render(m)
	if err != nil || h.settings.Query != fieldsQuery {
		return to, err
	}
	return render.AddFields(to, m)
}

// headerOf returns a header of a message, ignoring the case of its name.
func headerOf(d sinksdk.Datum, name string) string {
	headers := d.Headers()
	if value, ok := headers[name]; ok {
		return value
	}
	for key, value := range headers {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// lines formats headers, so that they can be part of a key.
func lines(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // sorted; a strings.Builder takes everything
	return b.String()
}

// dispatch sends each group in its own goroutine, once there is a place for it.
func (b *batch) dispatch(groups []group) {
	for _, g := range groups {
		if b.ctx.Err() != nil {
			continue // responses answers these
		}
		s := &seat{slots: b.slots}
		if s.take(b.ctx) != nil {
			continue
		}
		b.running.Go(func() {
			defer s.leave()
			defer func() {
				if p := recover(); p != nil {
					b.rescue(g, p)
				}
			}()
			b.send(s.within(b.ctx), g)
		})
	}
}

// rescue keeps a panic in one request from ending the process: its unanswered messages are answered with a failure.
func (b *batch) rescue(g group, p any) {
	b.log.Error("panic while a request was made", "panic", p, "stack", string(debug.Stack()))
	for _, a := range g.Items {
		if !a.given {
			a.give(sinksdk.ResponseFailure(a.id, "internal error"))
		}
	}
}
