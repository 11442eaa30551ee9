package protocol

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A line is logged for each order that has come, changed or ended, and for none that is as before.
func TestOrdersAreLoggedOnce(t *testing.T) {
	const (
		overridden, over = "the pool's limit is overridden", "the override of the pool's limit has ended"
		by, noLonger     = "the pool goes by a changed settings file", "the pool no longer goes by a changed settings file"
		changed, ended   = "a quota was changed", "the change of a quota has ended"
	)
	override := func(most int, why string, at int64) orders {
		return orders{override: Override{Max: most, Reason: why, ending: overrideEnd{at: at}}}
	}
	file := func(count int, hash string) orders { return orders{file: File{Count: count, Hash: hash}} }
	quota := func(total int, why string, left time.Duration) orders {
		return orders{quotas: QuotaChanges{
			Tags: map[string]limit.Quota{"acme": {Total: total}}, Orders: map[string]QuotaOrder{"acme": {Reason: why, ending: overrideEnd{left: left}}},
		}}
	}
	for name, c := range map[string]struct {
		was, is orders
		lines   []string
	}{
		"nothing":              {orders{}, orders{}, nil},
		"an override":          {orders{}, override(5, "", 0), []string{overridden}},
		"for another reason":   {override(5, "", 0), override(5, "x", 0), []string{overridden}},
		"written again":        {override(5, "x", 1), override(5, "x", 2), nil},
		"it ends":              {override(5, "x", 1), orders{}, []string{over}},
		"there was none":       {override(0, "x", 0), orders{}, nil},
		"a file":               {orders{}, file(1, "a"), []string{by}},
		"the same one":         {file(1, "a"), file(1, "a"), nil},
		"it comes again":       {file(1, "a"), file(3, "a"), []string{by}},
		"another of its place": {file(1, "a"), file(1, "b"), []string{by}},
		"no file":              {file(1, "a"), file(2, ""), []string{noLonger}},
		"there was no file":    {orders{}, file(2, ""), nil},
		"a quota":              {orders{}, quota(5, "", 0), []string{changed}},
		"another quota":        {quota(5, "", 0), quota(6, "", 0), []string{changed}},
		"its reason":           {quota(5, "", 0), quota(5, "x", 0), []string{changed}},
		"its end is written":   {quota(5, "x", 0), quota(5, "x", 1), nil},
		"it is ended":          {quota(5, "x", 0), orders{}, []string{ended}},
	} {
		var said []string
		for _, l := range c.is.since(&c.was) {
			said = append(said, l.Message)
		}
		require.Equal(t, c.lines, said, name)
	}
}

func TestWhatIsSaidOfAFile(t *testing.T) {
	args := func(f File) []any { return f.since(&File{})[0].Args }
	require.Equal(t, []any{"file", "f@a", "quotas", false, "logLevel", ""}, args(File{Name: "f", Hash: "a"}))
	require.Equal(t, []any{"file", "@a", "max", 5, "per", "1m", "quotas", true, "logLevel", "debug"},
		args(File{Hash: "a", Max: 5, Per: time.Minute, Quotas: &limit.Quotas{}, LogLevel: "debug"}))
}

// A lease says what is in force, and the even share only where it could soon be had.
func TestWhatALeaseSays(t *testing.T) {
	base := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		but    func(p *Processor)
		even   int64
		until  time.Duration
		frozen time.Duration
		reason limit.Reason
	}{
		"a share":               {func(*Processor) {}, 7, 11 * time.Second, 0, limit.ReasonStoreLost},
		"none":                  {func(p *Processor) { p.held = 0 }, 0, 0, 0, limit.ReasonNoShare},
		"without the store":     {func(p *Processor) { p.state, p.degraded = StateLost, true }, 0, 11 * time.Second, 0, limit.ReasonStoreLost},
		"frozen":                {func(p *Processor) { p.frozen = time.Second + 1 }, 0, 11 * time.Second, time.Second + 1, limit.ReasonStoreLost},
		"no longer frozen":      {func(p *Processor) { p.frozen = time.Second }, 7, 11 * time.Second, 0, limit.ReasonStoreLost},
		"tokens are issued":     {func(p *Processor) { p.held, p.issuing = 0, true }, 0, 11 * time.Second, 0, limit.ReasonNoShare},
		"it joins":              {func(p *Processor) { p.state, p.held = StateJoining, 0 }, 0, 0, 0, limit.ReasonNoShare},
		"it is replaced":        {func(p *Processor) { p.state, p.held = StateReplaced, 0 }, 0, 0, 0, limit.ReasonReplaced},
		"it has left":           {func(p *Processor) { p.state, p.held = StateLeft, 0 }, 0, 0, 0, limit.ReasonClosed},
		"others have all slots": {func(p *Processor) { p.held, p.split.slots = 0, 1 }, 0, 0, 0, limit.ReasonInFlight},
		"unreadable, and none":  {func(p *Processor) { p.held, p.ceiling.unreadable = 0, errors.New("strange") }, 0, 0, 0, limit.ReasonUnreadable},
		"unreadable":            {func(p *Processor) { p.ceiling.unreadable = errors.New("strange") }, 7, 11 * time.Second, 0, limit.ReasonUnreadable},
	} {
		p := content(t, 0)
		p.even = 7
		c.but(p)
		l := p.leaseOf(time.Second, 0, base)
		require.Equal(t, c.even, l.Even, name)
		require.Equal(t, c.reason, l.Reason, name)
		for at, want := range map[time.Time]time.Duration{l.Until: c.until, l.Frozen: c.frozen} {
			if want == 0 {
				require.Zero(t, at, name)
				continue
			}
			require.Equal(t, base.Add(want), at, name)
		}
	}
}

// A logbook is told what is left of the lease, and of limits that differ, which do not count while an override or a file is in force.
func TestWhatALogbookIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		but    func(p *Processor)
		counts bool
	}{
		"as configured": {func(*Processor) {}, true},
		"an override":   {func(p *Processor) { p.ceiling.override.Max = 5 }, false},
		"a file":        {func(p *Processor) { p.files.file.Max = 5 }, false},
	} {
		p := content(t, 0)
		p.notes = []Note{NoteIn("1 0 600 60000000 0 0"), NoteIn("1 0 900 60000000 0 0")}
		c.but(p)
		s := p.Situation(2*time.Second, nil)
		require.Equal(t, 9*time.Second, s.left, name)
		require.Equal(t, c.counts, strings.Contains(s.settings, " counts"), name)
	}
	for _, c := range []struct {
		seq      uint64
		failures int
		never    bool
	}{{0, 0, false}, {0, 1, true}, {5, 1, false}} {
		p := content(t, 0)
		p.last.Seq, p.failures = c.seq, c.failures
		require.Equal(t, c.never, p.NeverAnswered(), c)
	}
	p := content(t, 0)
	require.False(t, p.Left())
	p.Leave(time.Second)
	require.True(t, p.Left())
}
