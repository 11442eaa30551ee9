package httpthrottle

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// judging holds back the calls with a tag while the answer to one of them is read. Its head says that the service wants to be left alone,
// and its body will say for how long, or that no wait helps. That takes peekTime at most. The zero judging holds back nobody.
type judging struct {
	some atomic.Int64 // how many answers are read

	mu   sync.Mutex
	tags map[string]*judged
}

type judged struct {
	answers int
	over    chan struct{}
}

// begin holds back the calls with a tag until end is called.
func (j *judging) begin(tag string) (end func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := j.tags[tag]
	if at == nil {
		at = &judged{over: make(chan struct{})}
		if j.tags == nil {
			j.tags = map[string]*judged{}
		}
		j.tags[tag] = at
	}
	at.answers++
	j.some.Add(1)
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.some.Add(-1)
		if at.answers--; at.answers == 0 {
			delete(j.tags, tag)
			close(at.over)
		}
	}
}

// of returns a channel that is closed when calls with a tag may go on; nil: now.
func (j *judging) of(tag string) <-chan struct{} {
	if j.some.Load() == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if at := j.tags[tag]; at != nil {
		return at.over
	}
	return nil
}

// judge classifies a response, first by its head, then with its body. end must be called when the result has been reported.
func (c *call) judge(res *http.Response) (a Answer, r Refusal, refused bool, end func()) {
	a = Answer{Status: res.StatusCode, Header: res.Header, At: time.Now(), longest: c.maxPause}
	end = func() {}
	r, refused = c.classify(a)
	if a.Status < http.StatusBadRequest || !hasBody(res) {
		return a, r, refused, end
	}
	if refused && c.holds(r) {
		end = c.judging.begin(c.name)
	}
	reported := false
	defer func() {
		if !reported { // a classifier of the user panics
			end()
		}
	}()
	a.Body = peekAt(res).await()
	r, refused = c.classify(a)
	reported = true
	return a, r, refused, end
}

// holds reports whether others are to wait because of the head of a refusal.
func (t *transport) holds(r Refusal) bool {
	if t.pauser == nil || r.Class == Stop {
		return false
	}
	own, _ := t.pauser.(*Pause)
	if own != nil && own.ToldOnly {
		return r.RetryAfter > brief
	}
	return r.RetryAfter > 0 || r.Class == Wait && own != nil
}
