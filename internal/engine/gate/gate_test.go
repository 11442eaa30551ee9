package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A world is a Scheduler whose time moves when a test says so, and in which a caller is woken by what parked does.
type world struct {
	now    time.Time
	parked func()
}

func (w *world) Now() time.Time                                { return w.now }
func (w *world) AfterFunc(time.Duration, func()) sharing.Timer { return nil }
func (w *world) Caller() (wake func())                         { return w.parked }
func (w *world) Park(context.Context)                          { w.parked() }
func (w *world) Float64() float64                              { return 0.5 }

// A poolOf notes what it is asked for.
type poolOf struct{ asked []string }

func (p *poolOf) note(what string, until time.Time, reason string) {
	p.asked = append(p.asked, fmt.Sprintf("%s %s %s", what, until.UTC().Format("15:04:05"), reason))
}

func (p *poolOf) Pause(_ context.Context, until time.Time, reason string, _ ...limit.PauseOption) (limit.PauseReceipts, error) {
	p.note("pause", until, reason)
	return limit.PauseReceipts{Until: until}, nil
}

func (p *poolOf) Resume(context.Context, ...limit.PauseOption) error {
	p.asked = append(p.asked, "resume")
	return errors.New("resumed")
}

func (p *poolOf) RetryAfter(until time.Time, reason string) { p.note("retry", until, reason) }

// started returns a gate that began at noon, and the times at which its pauses changed.
func started(o Options, off bool, sharer any) (g *Gate, w *world, changes *[]int64) {
	w, changes = &world{now: time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)}, new([]int64)
	o.Clock = w
	g = &Gate{}
	g.Begin(o, off, sharer, func(now int64) { *changes = append(*changes, now) })
	return g, w, changes
}

func TestTheMachinesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{}
		g.Begin(Options{}, false, nil, func(int64) {})
		time.Sleep(time.Second)
		require.Equal(t, int64(time.Second), g.Now())
		require.Equal(t, time.Now(), g.Present())
		require.Equal(t, int64(3*time.Second), g.At(time.Now().Add(2*time.Second)))
		require.Nil(t, g.Waker())
		ready := make(chan struct{})
		g.AfterFunc(time.Second, func() { close(ready) })
		require.True(t, g.Await(t.Context(), ready))
		require.Equal(t, int64(2*time.Second), g.Now())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, g.Await(ctx, make(chan struct{})))
		for range 100 {
			require.InDelta(t, 0.5, g.chance(), 0.5)
		}
	})
}

func TestTheClockOfAWorld(t *testing.T) {
	g, w, _ := started(Options{}, false, nil)
	w.now = w.now.Add(time.Minute)
	require.Equal(t, int64(time.Minute), g.Now())
	require.Equal(t, w.now, g.Present())
	require.InDelta(t, 0.5, g.chance(), 0)
	require.Nil(t, g.AfterFunc(0, nil))

	ready, times := make(chan struct{}, 1), 0
	w.parked = func() {
		if times++; times == 3 {
			ready <- struct{}{}
		}
	}
	require.True(t, g.Await(t.Context(), ready))
	require.Equal(t, 3, times)
	g.Waker()()
	require.Equal(t, 4, times)
	ctx, cancel := context.WithCancel(t.Context())
	w.parked = cancel
	require.False(t, g.Await(ctx, ready))
}

func TestThawing(t *testing.T) {
	g, w, _ := started(Options{}, false, nil)
	frozen := limit.Lease{Frozen: w.now.Add(3 * time.Second)}
	require.Zero(t, g.Thawing(limit.Lease{}, 5))
	require.Equal(t, 2*time.Second, g.Thawing(frozen, int64(time.Second)))
	require.Zero(t, g.Thawing(frozen, int64(4*time.Second)))
}

// ofTag is the option of a pause of one tag.
func ofTag(tag string) limit.PauseOption { return func(s *bounds.PauseSettings) { s.Tag = tag } }

func TestPauseWithoutAPool(t *testing.T) {
	g, w, changes := started(Options{Tag: "own"}, false, nil)
	receipts, err := g.Pause(t.Context(), w.now.Add(10*time.Second), "maintenance")
	require.NoError(t, err)
	require.Equal(t, limit.PauseReceipts{Until: w.now.Add(10 * time.Second)}, receipts)
	require.True(t, g.Paused(g.Now()))
	require.Equal(t, []int64{0}, *changes)
	left, known := g.PauseLeft(int64(time.Second))
	require.True(t, known)
	require.Equal(t, 9500*time.Millisecond, left)
	p, paused := g.PausedFor("a")
	require.True(t, paused)
	require.Equal(t, "maintenance", p.Reason)

	_, err = g.Pause(t.Context(), w.now.Add(20*time.Second), "of a", ofTag("a"))
	require.NoError(t, err)
	p, _ = g.PausedFor("a")
	require.Equal(t, "of a", p.Reason)
	p, _ = g.PausedFor("b")
	require.Equal(t, "maintenance", p.Reason)
	require.NoError(t, g.Resume(t.Context()))
	_, paused = g.PausedFor("b")
	require.False(t, paused)
	require.NoError(t, g.Resume(t.Context(), ofTag("a")))
	_, paused = g.PausedFor("a")
	require.False(t, paused)
	require.Len(t, *changes, 4)
}

func TestPausesThatAreRefused(t *testing.T) {
	g, w, changes := started(Options{}, false, nil)
	var e *limit.PauseError
	_, err := g.Pause(t.Context(), w.now.Add(-1), "late")
	require.ErrorAs(t, err, &e)
	_, err = g.Pause(t.Context(), w.now.Add(1), "", ofTag("\n"))
	require.Error(t, err)
	require.Error(t, g.Resume(t.Context(), ofTag("\n")))
	require.Empty(t, *changes)

	for i := range bounds.MaxPausedTags - 1 {
		_, err = g.Pause(t.Context(), w.now.Add(time.Minute), "", ofTag(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	_, err = g.Pause(t.Context(), w.now.Add(time.Hour), "", ofTag("0"))
	require.NoError(t, err, "it is paused already")
	_, err = g.Pause(t.Context(), w.now.Add(time.Minute), "", ofTag("one too many"))
	require.ErrorAs(t, err, &e)
	require.Equal(t, "tag", e.Field)
	_, err = g.Pause(t.Context(), time.Time{}, "everything")
	require.NoError(t, err)
}

func TestPausesOfAPool(t *testing.T) {
	pool := &poolOf{}
	g, w, changes := started(Options{}, false, pool)
	receipts, err := g.Pause(t.Context(), w.now.Add(time.Hour), "x")
	require.NoError(t, err)
	require.Equal(t, w.now.Add(time.Hour), receipts.Until)
	require.EqualError(t, g.Resume(t.Context()), "resumed")
	g.RetryAfter(w.now, "now")
	g.RetryAfter(w.now.Add(time.Second), "soon")
	g.RetryAfter(w.now.Add(time.Hour), "later")
	g.MaxRetryAfter = time.Minute
	g.RetryAfter(w.now.Add(time.Hour), "later")
	require.Equal(t, []string{"pause 13:00:00 x", "resume", "retry 12:00:01 soon", "retry 12:05:00 later", "retry 12:01:00 later"}, pool.asked)
	require.Empty(t, *changes)
	g.SetPauses([]limit.Paused{{}})
	require.True(t, g.Paused(0))
}

// Whatever a service says, and however far ahead, the limiter waits for it.
func TestRetryAfterOfAnyText(t *testing.T) {
	for said, shown := range map[string]string{
		"":                                "",
		"status 429":                      "status 429",
		"rate limited:\n\tretry\r":        "rate limited:  retry ",
		"caf\xe9":                         "caf\ufffd",
		strings.Repeat("x", 128):          strings.Repeat("x", 128),
		strings.Repeat("x", 129):          strings.Repeat("x", 128),
		strings.Repeat("€", 100):          strings.Repeat("€", 42),
		"\xff" + strings.Repeat("x", 200): "\ufffd" + strings.Repeat("x", 125),
	} {
		g, w, _ := started(Options{MaxRetryAfter: 10000 * time.Hour}, false, nil)
		g.RetryAfter(w.now.Add(20000*time.Hour), said)
		p, paused := g.PausedFor("")
		require.True(t, paused, "%q", said)
		require.Equal(t, shown, p.Reason)
		require.Equal(t, w.now.Add(bounds.MaxPause), p.Until)
	}
}

func TestOffAndClosed(t *testing.T) {
	off, w, changes := started(Options{}, true, nil)
	require.True(t, off.Off())
	require.Nil(t, off.WaitStats())
	_, err := off.Pause(t.Context(), time.Time{}, "")
	require.ErrorIs(t, err, errNoLimit)
	require.ErrorIs(t, off.Resume(t.Context()), errNoLimit)
	off.SetPauses([]limit.Paused{{}})
	off.RetryAfter(w.now.Add(time.Second), "")
	require.Empty(t, *changes)

	broken := errors.New("broken")
	var order []string
	then := func(what string, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			order = append(order, what)
			_, bounded := ctx.Deadline()
			require.True(t, bounded)
			return err
		}
	}
	pool := &poolOf{}
	g, w, changes := started(Options{OnClose: []func(context.Context) error{then("first", broken), then("second", nil)}}, false, pool)
	g.Waits.CountWait(limit.ReasonLimit)
	require.Len(t, g.WaitStats(), 1)
	rung := 0
	quit := g.OnClosing(func() { rung += 100 })
	g.OnClosing(func() { rung++ })
	require.Equal(t, 2, g.Listeners())
	quit()
	require.Equal(t, 1, g.Listeners())
	require.False(t, g.IsClosed())
	require.ErrorIs(t, g.Close(func() { order = append(order, "stop") }), broken)
	require.NoError(t, g.Close(func() { order = append(order, "again") }))
	require.Equal(t, []string{"stop", "first", "second"}, order)
	require.True(t, g.IsClosed())
	require.Equal(t, 1, rung)
	g.OnClosing(func() { rung++ })()
	require.Equal(t, 2, rung, "at once")
	require.Zero(t, g.Listeners())

	_, err = g.Pause(t.Context(), time.Time{}, "")
	require.ErrorIs(t, err, sharing.ErrClosed)
	require.ErrorIs(t, g.Resume(t.Context()), sharing.ErrClosed)
	g.RetryAfter(w.now.Add(time.Second), "")
	g.SetPauses([]limit.Paused{{}})
	require.Empty(t, *changes)
	require.Empty(t, pool.asked)
}
