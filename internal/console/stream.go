package console

import (
	"encoding/json"
	"net/http"
	"time"
)

// Times of a stream.
const (
	writeTimeout = 10 * time.Second // of one event
	heartbeat    = 15 * time.Second // without one, the page assumes that the console is gone
)

// A stream is a response of server-sent events.
type stream struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

// begin starts a stream if the number of streams allows it. end frees its slot.
func (k *Console) begin(w http.ResponseWriter) (s *stream, end func(), ok bool) {
	select {
	case k.streams <- struct{}{}:
	default:
		fail(w, http.StatusServiceUnavailable, "too many pages look at once")
		return nil, nil, false
	}
	s = &stream{w: w, out: http.NewResponseController(w)}
	_ = s.out.SetReadDeadline(time.Time{}) // not every writer has one
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	return s, func() { <-k.streams }, true
}

// send sends one event. An error means that the viewer is gone.
func (s *stream) send(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.write("data: " + string(text) + "\n\n")
}

func (s *stream) write(text string) error {
	_ = s.out.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.out.Flush()
}

// pools streams the overview of all pools.
func (k *Console) pools(w http.ResponseWriter, r *http.Request) {
	s, end, ok := k.begin(w)
	if !ok {
		return
	}
	defer end()
	tick := time.NewTicker(3 * k.c.Every)
	defer tick.Stop()
	for s.send(k.list.pools(k.ctx)) == nil && k.allowed(r) {
		select {
		case <-r.Context().Done():
			return
		case <-k.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pool streams one pool: first the kept history, then news.
func (k *Console) pool(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" || len(name) > 256 {
		fail(w, http.StatusBadRequest, "name is missing, or too long")
		return
	}
	s, end, ok := k.begin(w)
	if !ok {
		return
	}
	defer end()
	f, wake, stop := k.hub.look(k.ctx, name)
	defer stop()
	var at position
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	u := f.news(&at, time.Now())
	err := s.send(u)
	for err == nil && !u.Missing && k.allowed(r) {
		select {
		case <-r.Context().Done():
			return
		case <-k.ctx.Done():
			return
		case <-wake:
			u = f.news(&at, time.Now())
			err = s.send(u)
		case <-beat.C:
			err = s.write(": still there\n\n")
		}
	}
}

// allowed reports whether the viewer may continue: its session may have ended.
func (k *Console) allowed(r *http.Request) bool {
	_, in := k.sessions.of(r)
	return in || !k.sessions.any
}
