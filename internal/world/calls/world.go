package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// Play plays the scenarios of files. own returns the further commands of one scenario; nil for none.
func Play(t *testing.T, files string, own func() Commands) {
	t.Helper()
	scenario.Play(t, files, func(t *testing.T, _ string) scenario.World {
		var further Commands
		if own != nil {
			further = own()
		}
		return &play{
			t: t, own: further, limits: map[string]throttle.Limiter{}, clients: map[string]http.RoundTripper{}, calls: map[string][]*call{},
			notes: &notes{}, watcher: &watcher{}, told: &told{}, gate: make(chan struct{}), pause: &httpthrottle.Pause{},
		}
	}, "")
}

// A play is the world of a scenario.
type play struct {
	t       *testing.T
	own     Commands
	service service
	limits  map[string]throttle.Limiter
	limit   string                // the newest
	script  *throttletest.Limiter // the newest
	gate    chan struct{}         // for the script's step pass
	clients map[string]http.RoundTripper
	calls   map[string][]*call
	all     []*call
	pause   *httpthrottle.Pause // that several clients share
	notes   *notes
	watcher *watcher
	told    *told
	journal journal
	taken   int   // slots, by the scenario
	last    *call // that was looked at last
}

// Do implements scenario.World.
func (p *play) Do(name string, line *scenario.Order) string {
	o := &Order{play: p, Order: line}
	if name == "reset" || name[0] >= '0' && name[0] <= '9' {
		o.Answer(name)
		return ""
	}
	if do, ok := actions[name]; ok {
		do(o)
		return ""
	}
	synctest.Wait()
	if do, ok := p.own[name]; ok {
		return do(o)
	}
	require.Contains(p.t, questions, name, o.Line)
	return questions[name](o)
}

// End implements scenario.World.
func (p *play) End() {
	last := map[*call]*attempt{}
	for _, c := range p.all {
		c.stop(context.Canceled)
		if <-c.done; c.res != nil {
			c.close()
		}
	}
	time.Sleep(2 * time.Second) // what nobody waits for is read for a second
	for _, a := range p.service.attempts() {
		if before := last[a.of]; a.of != nil && before != nil && before.answer != nil && before.answer.every == 0 && !errors.Is(before.answer.end, errNever) {
			require.Equal(p.t, "whole", before.answer.state(), "the answer to an attempt that was made again")
		}
		require.True(p.t, a.answer == nil || a.answer.state() != "open", "an answer is still open")
		if a.of == nil {
			continue
		}
		require.True(p.t, a.broken || a.of.text == a.body, "the body of an attempt")
		require.Equal(p.t, a.of.sent.Get("Authorization"), a.header.Get("Authorization"), "the caller's headers")
		require.False(p.t, a.again && a.of.body == nil, "a body that can be had again, and there is none")
		last[a.of] = a
	}
	for _, c := range p.all {
		require.Empty(p.t, c.judge(last[c]))
	}
	require.NotContains(p.t, fmt.Sprint(p.journal.lines), Secret, "the log")
	for _, l := range p.limits {
		switch l := l.(type) {
		case *throttle.InFlight:
			require.Equal(p.t, p.taken, l.Status().InUse, "slots that are not free")
			_ = l.Close()
		case *throttle.Throttle:
			_ = l.Close()
		case *throttletest.Limiter:
			for _, d := range l.Draws() {
				require.True(p.t, d.Granted == 0 || d.Settled, "a permit that is not settled")
			}
		}
	}
}

// An Order is a command, and what it acts on.
type Order struct {
	*play
	*scenario.Order
}

// ended says that a call waits, or what became of it and how long that took.
func (o *Order) ended(c *call) string {
	if !c.isOver() {
		return "waits"
	}
	o.last = c
	var words []string
	switch {
	case c.err != nil:
		words = o.failed(c.err)
	case c.res == nil:
		words = []string{c.got}
	default:
		words = []string{strconv.Itoa(c.res.StatusCode), c.fault("reason")}
	}
	return strings.Join(append(words, took(c.took)...), " ")
}

// failed returns the words of an error.
func (o *Order) failed(err error) (words []string) {
	e, ok := errors.AsType[*throttle.Error](err)
	require.Equal(o.T, ok && e.Reason != throttle.ReasonClosed, errors.Is(err, throttle.ErrThrottled), o.Line)
	if ok {
		some := *e
		some.Reason = ""
		words = append([]string{string(e.Reason)}, strings.Fields(scenario.NewOrder(o.T, o.Line, "").Tell(some))...)
	}
	r, ok := errors.AsType[*httpthrottle.RefusedError](err)
	if ok {
		words = append(words, string(r.Refusal.Class))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		words = append(words, "deadline")
	}
	switch {
	case err == errReset: //nolint:errorlint // as it came
		return []string{"reset"}
	case words == nil:
		return strings.Fields(err.Error())
	}
	return words
}

// Notes are a Feedback that keeps what it is told, and holds back nobody.
type notes struct {
	mu       sync.Mutex
	refused  []httpthrottle.Refusal
	accepted []httpthrottle.Acceptance
}

func (n *notes) Refused(_ context.Context, r httpthrottle.Refusal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused = append(n.refused, r)
}

func (n *notes) Accepted(_ context.Context, a httpthrottle.Acceptance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accepted = append(n.accepted, a)
}

// A noted Pause holds back, and keeps what it is told.
type noted struct {
	*httpthrottle.Pause

	notes *notes
}

func (n noted) Refused(ctx context.Context, r httpthrottle.Refusal) {
	n.notes.Refused(ctx, r)
	n.Pause.Refused(ctx, r)
}

func (n noted) Accepted(ctx context.Context, a httpthrottle.Acceptance) {
	n.notes.Accepted(ctx, a)
	n.Pause.Accepted(ctx, a)
}

// A watcher is an observer that keeps what it is told.
type watcher struct {
	mu    sync.Mutex
	waits []throttle.Wait
	ends  []throttle.Waited
}

// Waits implements throttle.Observer.
func (w *watcher) Waits(_ context.Context, wait throttle.Wait) func(throttle.Waited) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, wait)
	return func(end throttle.Waited) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ends = append(w.ends, end)
	}
}

// told is what listeners were told.
type told struct {
	mu    sync.Mutex
	words []string
}

// A listener is a limiter that keeps what it is told, and grants everything.
type listener struct {
	throttle.Limiter

	name   string
	told   *told
	adapts bool
}

// Adapts is what hook.Adaptive asks a limiter of another package.
func (l listener) Adapts() bool { return l.adapts }

// RetryAfter is what a transport tells.
func (l listener) RetryAfter(until time.Time, reason string) {
	l.told.mu.Lock()
	defer l.told.mu.Unlock()
	l.told.words = append(l.told.words, l.name, time.Until(until).String()+":", reason)
}

// A tagged listener has one more for each tag.
type tagged struct{ listener }

// ForTag implements throttle.Tagger.
func (l tagged) ForTag(tag string) throttle.Limiter {
	l.name += ":" + tag
	return l.listener
}

// A late limiter draws after its time, whatever becomes of the context.
type late struct {
	throttle.Limiter

	by time.Duration
}

func (l late) Acquire(_ context.Context, n int) (throttle.Permit, error) {
	time.Sleep(l.by)
	return l.Limiter.Acquire(context.Background(), n)
}

// A journal keeps the attributes of what is logged.
type journal struct {
	mu    sync.Mutex
	lines []map[string]string
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line := map[string]string{"level": r.Level.String(), "msg": r.Message}
	r.Attrs(func(a slog.Attr) bool {
		line[a.Key] = a.Value.String()
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
	return nil
}

// WithAttrs implements slog.Handler: it takes only those of each line.
func (j *journal) WithAttrs([]slog.Attr) slog.Handler { return j }

// WithGroup implements slog.Handler.
func (j *journal) WithGroup(string) slog.Handler { return j }

// bytesRead is a Meter that counts bytes.
type bytesRead struct {
	n       int
	unknown bool
}

func (m *bytesRead) Write(p []byte) (int, error) {
	m.n += len(p)
	return len(p), nil
}

func (m *bytesRead) Used() (int, bool) { return m.n, !m.unknown }
