package httpproxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// A body is that of a request, as far as it was read.
type body struct {
	kept  []byte
	whole bool
	rest  io.ReadCloser // nil when it is whole
}

// bodyOf returns the body of a request, of which nothing was read; nil for none.
func (p *proxy) bodyOf(w http.ResponseWriter, r *http.Request) *timedBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &timedBody{
		ReadCloser: http.MaxBytesReader(w, r.Body, int64(p.MaxBody)), control: http.NewResponseController(w), pace: newPace(p.IdleTimeout),
	}
}

// readBody reads as much of a body as is kept. Errors: *http.MaxBytesError for one that is too long; errLate for one that does not
// come in time; those of the connection.
func (p *proxy) readBody(r *http.Request, in *timedBody) (*body, error) {
	if r.ContentLength > int64(p.MaxBody) {
		return nil, &http.MaxBytesError{Limit: int64(p.MaxBody)}
	}
	if in == nil {
		return &body{whole: true}, nil
	}
	room := int64(p.BodyBuffer)
	if r.ContentLength > room && !p.cost.estimates && p.tag.path == nil {
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

// attach makes b the body of a request. One that was read whole gets a length, unless there are trailers, which need chunks.
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

// A timedBody ends when its client sends too little for too long.
type timedBody struct {
	io.ReadCloser

	control *http.ResponseController
	pace    pace
	late    atomic.Bool
	ended   atomic.Bool // it was read to its end
}

// closeUnread ends the connection after an answer to a request whose body was not read to its end, so that nobody has to read the rest.
func closeUnread(w http.ResponseWriter, in *timedBody) {
	if in != nil && !in.ended.Load() {
		w.Header().Set("Connection", "close")
	}
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	begun := time.Now()
	_ = b.control.SetReadDeadline(begun.Add(b.pace.left)) // where it cannot be set there is none
	n, err := b.ReadCloser.Read(p)
	b.pace.took(time.Since(begun), n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.late.Store(true)
		return n, errLate // and the deadline stays: nothing is read from this connection any more
	}
	if err == nil {
		return n, nil
	}
	_ = b.control.SetReadDeadline(time.Time{}) // the connection is watched from now on, for as long as the answer takes
	if err == io.EOF {                         // as io.Reader has it
		b.ended.Store(true)
		return n, err
	}
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return n, err
	}
	return n, &brokenError{err}
}

// A brokenError is why a body cannot be read: its client has sent what is no body, or has gone.
type brokenError struct{ error }

// Unwrap returns what was found.
func (e *brokenError) Unwrap() error { return e.error }

// errLate is why a request could not be read.
var errLate = errors.New("httpproxy: nothing came of the request's body for longer than idleTimeout")

// A timedWriter ends an answer whose client does not read for too long.
type timedWriter struct {
	http.ResponseWriter

	control *http.ResponseController
	idle    time.Duration
}

// WriteHeader implements http.ResponseWriter. An answer without a Content-Type goes on without one: net/http would guess it.
func (w *timedWriter) WriteHeader(status int) {
	if _, ok := w.Header()["Content-Type"]; !ok {
		w.Header()["Content-Type"] = nil
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *timedWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.idle)) // where it cannot be set there is none
	return w.ResponseWriter.Write(p)
}

// Unwrap shows the writer to http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// errSilent is why an answer ended.
var errSilent = errors.New("httpproxy: nothing came of the answer for longer than idleTimeout")

// watchAnswer ends an answer of which nothing comes for too long.
func (p *proxy) watchAnswer(res *http.Response) error {
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
