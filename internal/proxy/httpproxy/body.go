package httpproxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// A body is the body of a request, as far as it was read.
type body struct {
	kept  []byte
	whole bool
	rest  io.ReadCloser // nil when it is whole
}

// bodyOf returns the unread body of a request; nil for none.
func (p *handler) bodyOf(w http.ResponseWriter, r *http.Request) *timedBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &timedBody{
		ReadCloser: http.MaxBytesReader(w, r.Body, int64(p.MaxBody)), control: http.NewResponseController(w), pace: newPace(p.IdleTimeout),
	}
}

// readBody reads as much of a body as is kept. Errors: *http.MaxBytesError for a body that is too long; errLate for one that does not come
// in time; those of the connection.
func (p *handler) readBody(r *http.Request, in *timedBody) (*body, error) {
	if r.ContentLength > int64(p.MaxBody) {
		return nil, &http.MaxBytesError{Limit: int64(p.MaxBody)}
	}
	if in == nil {
		return &body{whole: true}, nil
	}
	room := int64(p.BodyBuffer)
	if r.ContentLength > room && !p.cost.estimates && !slices.ContainsFunc(p.tags, func(rule tagRule) bool { return rule.path != nil }) {
		return &body{rest: in}, nil
	}
	kept, err := io.ReadAll(io.LimitReader(in, room+1))
	if err != nil {
		return nil, err
	}
	if int64(len(kept)) > room {
		return &body{kept: kept, rest: in}, nil
	}
	return &body{kept: kept, whole: true}, nil
}

// attach makes b the body of a request. A body that was read whole gets a length, unless there are trailers, which need chunks.
func (b *body) attach(r *http.Request) {
	switch {
	case b.whole && len(r.Trailer) > 0:
		r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.kept)), nil }
		r.Body, _ = r.GetBody()
	case !b.whole:
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(b.kept), b.rest), b.rest}
	case len(b.kept) > 0:
		r.ContentLength = int64(len(b.kept))
		r.TransferEncoding = nil
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.kept)), nil }
		r.Body, _ = r.GetBody()
	case r.ContentLength <= 0:
		r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
	}
}

// A timedBody ends if its client sends too little for too long.
type timedBody struct {
	io.ReadCloser

	control *http.ResponseController
	pace    pace
	late    atomic.Bool
	ended   atomic.Bool // it was read to the end
}

// closeUnread closes the connection after the response to a request with an unread rest of its body, so that nobody has to read the rest.
func closeUnread(w http.ResponseWriter, in *timedBody) {
	if in != nil && !in.ended.Load() {
		w.Header().Set("Connection", "close")
	}
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	begun := time.Now()
	_ = b.control.SetReadDeadline(begun.Add(b.pace.left)) // if this fails, there is none
	n, err := b.ReadCloser.Read(p)
	b.pace.took(time.Since(begun), n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.late.Store(true)
		return n, errLate // the deadline stays: nothing more is read from this connection
	}
	if err == nil {
		return n, nil
	}
	_ = b.control.SetReadDeadline(time.Time{}) // from now on net/http watches the connection, during the whole response
	if err == io.EOF {                         // as io.Reader requires
		b.ended.Store(true)
		return n, err
	}
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return n, err
	}
	return n, &brokenError{err}
}

// A brokenError is the reason why a body cannot be read: the client sent an invalid one, or has gone.
type brokenError struct{ error }

// Unwrap returns the cause.
func (e *brokenError) Unwrap() error { return e.error }

// errLate means that a request's body came too late.
var errLate = errors.New("httpproxy: nothing came of the request's body for longer than idleTimeout")

// A timedWriter ends a response if its client does not read for too long.
type timedWriter struct {
	http.ResponseWriter

	control *http.ResponseController
	idle    time.Duration
}

// WriteHeader implements http.ResponseWriter. It prevents net/http from guessing a missing Content-Type.
func (w *timedWriter) WriteHeader(status int) {
	if _, ok := w.Header()["Content-Type"]; !ok {
		w.Header()["Content-Type"] = nil
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *timedWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.idle)) // if this fails, there is none
	return w.ResponseWriter.Write(p)
}

// Unwrap exposes the writer to http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// errSilent means that a response ended because of silence.
var errSilent = errors.New("httpproxy: nothing came of the answer for longer than idleTimeout")

// watchAnswer ends a response that is silent for too long.
func (p *handler) watchAnswer(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		return p.watchTunnel(res)
	}
	if res.Body == nil || res.Body == http.NoBody {
		return nil
	}
	res.Body = &watchedBody{ReadCloser: res.Body, idle: p.IdleTimeout}
	return nil
}

type watchedBody struct {
	io.ReadCloser

	idle time.Duration
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.idle, func() { _ = b.Close() })
	n, err := b.ReadCloser.Read(p)
	if !timer.Stop() && err != nil && !errors.Is(err, io.EOF) {
		return n, errSilent
	}
	return n, err
}
