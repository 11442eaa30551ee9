package protocol

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func limitOf(t testing.TB, l throttle.Limit) throttle.Limit {
	t.Helper()
	th, err := throttle.New(l)
	require.NoError(t, err)
	defer func() { require.NoError(t, th.Close()) }()
	return th.Limit()
}

func noteOf(l throttle.Limit, used, offered int64) (n Note) {
	setLimit(&n, hook.Ceiling(l), used, offered)
	return n
}

func TestNote(t *testing.T) {
	n := noteOf(limitOf(t, throttle.Limit{Max: 600, Per: time.Minute, Hard: true}), 7, 8)
	require.Equal(t, "1 1 600 60000000 7 8", n.String())
	require.Equal(t, n, NoteIn(n.String()))
	largest := Note{
		limit: ceiling.Rate{Max: maxNoteTokens, Per: time.Duration(maxNotePer) * time.Microsecond}, used: maxNoteFlow, offered: maxNoteFlow,
		Paused: wire.MaxVersion, retryAt: wire.MaxMicros,
		reports: true, served: backoff.Report{Generation: maxNoteCuts, Accepted: maxNoteFlow, Refused: maxNoteFlow, Overloaded: maxNoteFlow},
	}
	require.Equal(t, largest, NoteIn(largest.String()), "it all has room")
	full := largest
	full.needs, full.settings = [2]driver.Share{driver.Whole, driver.Whole}, digest("YYYYYYYY")
	require.True(t, full.settings.valid())
	require.Equal(t, largest, NoteIn(full.String()), "these have none beside the rest")
	full.retryAt = 0
	less := full
	less.settings = ""
	require.Equal(t, less, NoteIn(full.String()), "what draws need only gives way to a time that the service told")
	full.reports, full.served = false, backoff.Report{}
	full.retryAt = wire.MaxMicros
	require.Equal(t, full, NoteIn(full.String()), "without an adaptive limit it all has room")
	broken := noteOf(throttle.Limit{Max: 1, Per: time.Second + 1}, 0, 0)
	require.Equal(t, time.Second+time.Microsecond, broken.limit.Per, "never above the real limit")
	for _, text := range []string{
		"", "1", "1 0 0 60000000 0 0", "1 0 1 0 0 0", "1 0 1 999 0 0", "1 2 600 60000000 7 8", "2 0 600 60000000 7 8",
		"1 0 600 60000000 7", "1 0 600 60000000 7 8 9", "1 0 +600 60000000 7 8", "1  0 600 60000000 7 8",
		"1 0 600 60000000 -1 8", "1 0 1000000001 60000000 7 8", "1 0 600 60000000 7 64000000001", "1 0 600 60000000 7 9223372036854775808",
		strings.Repeat("1 ", 50), strings.Repeat("1 ", 100), "1 0 600 60000000 7 8 a:\x00",
	} {
		require.Zero(t, NoteIn(text), "%q", text)
	}
}

// The words of a note stand behind its limit, or alone. Those that a release does not know are no reason to ignore the others.
func TestWordsOfNote(t *testing.T) {
	const limit = "1 0 600 60000000 7 8"
	n := NoteIn(limit)
	n.Paused, n.retryAt = 65537, 36
	n.reports, n.served = true, backoff.Report{Generation: 40, Accepted: 500_000_000, Refused: 36}
	require.Equal(t, limit+" r:14.89oqgw.10 t:10 p:65537", n.String())
	require.Equal(t, n, NoteIn(limit+" c:12 p:65537 x:y r:14.89oqgw.10 t:10"))
	require.Equal(t, Note{Paused: 9}, NoteIn("1 p:9"))
	require.Equal(t, "1 p:9", Note{Paused: 9}.String())
	require.Equal(t, "1 r:0", Note{reports: true}.String())
	require.Equal(t, Note{reports: true}, NoteIn("1 r:0"))
	for _, word := range []string{"p:x", "p:-1", "p:+1", "p:9223372036854775808", "P:9", "p:", "t:A!", "t:zzzzzzzzzzzzz", "t:1_0", "new:word", "b:1 b:2"} {
		require.Equal(t, NoteIn(limit), NoteIn(limit+" "+word), "%q", word)
	}
	require.Zero(t, NoteIn("1 a:2.1.3"), "an announced limit stands behind a configured one")
	for _, word := range []string{"r:", "r:-1", "r:+1", "r:zzzzzzzz", "r:....5", "r:0.0.0.0.7", "r:!.!"} {
		require.Equal(t, backoff.Report{}, NoteIn(limit+" "+word).served, "%q", word)
	}
}

// Any text is no note, or a note that reads the same when it is written.
func FuzzParseNote(f *testing.F) {
	f.Add("1 0 600 60000000 7 8")
	f.Add("1 1 1000000000 2678400000000 64000000000 64000000000")
	f.Add("1 0 1 1000 00 0")
	f.Add("1 0 600 60000000 7 8 p:65537 more:words")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		_ = standingOf(text)
		n := NoteIn(text)
		n.standing = Standing{}
		require.Equal(t, n, NoteIn(n.String()))
		if n != (Note{}) {
			require.NoError(t, driver.ValidateNote(text))
		}
		if n.limit.Max > 0 {
			require.False(t, n.limit.Below(n.limit))
			require.Positive(t, n.limit.Tokens(time.Hour))
		}
	})
}

// Any body is an error, or an override that is in range and reads the same when it is
// written.
func FuzzParseOverride(f *testing.F) {
	for _, body := range []string{
		`{"max":600,"per":"1m"}`, `{"max":0}`, `{"max":5}`, `{"max":5,"per":""}`, `{"max":-1}`, `{"max":1.5}`, `{"max":1e3}`, `{"max":5,"per":"0s"}`,
		`{"max":5,"shape":1}`, `{"per":"1m"}`, `{"max":null}`, `{"max":5} x`, `{"max":5}{"max":6}`, `[]`, `null`, ``,
		`{"max":5,"max":6}`, `{"max":5,"per":"1ns"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := parseOverride(body)
		if err != nil {
			require.Zero(t, o)
			require.Less(t, len(err.Error()), 1000)
			return
		}
		require.NoError(t, o.Validate())
		again, err := parseOverride(bodyOf(t, o))
		require.NoError(t, err)
		require.Equal(t, o, again)
		require.LessOrEqual(t, len(bodyOf(t, o)), wire.MaxDocumentBytes)
	})
}

func TestParseOverrideRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"max":5,"shape":1}`:       "shape",
		`{"per":"1m"}`:              `allowed: {"max":600,"per":"1m"}`,
		`{"max":5} x`:               "not an override",
		`{"max":-5}`:                "Max is -5, allowed: 0",
		`{"max":5,"per":"1 month"}`: `per of the document limit is "1 month"`,
		`{"max":5,"per":"1ns"}`:     "Per is 1ns",
		`{"max":5,"until":"x"}`:     `until is "x", allowed: a time`,
		`5`:                         "not an override",
		``:                          "not an override",
	} {
		_, err := parseOverride([]byte(body))
		require.ErrorContains(t, err, want, body)
	}
}

// bodyOf is the body of the document that overrides the limit.
func bodyOf(t *testing.T, o Override) []byte {
	t.Helper()
	body, err := o.body()
	require.NoError(t, err)
	return body
}

// ceilingOf is what a processor with a limit knows of its pool that has heard of an override alone.
func ceilingOf(l throttle.Limit, o Override) poolCeiling {
	c := poolCeiling{override: o}
	c.configure(&sharing.Terms{Ceiling: hook.Ceiling(l)})
	c.law.Override = o.rate()
	return c
}

// A processor's spacing is by the override where that is what it goes by, and not where its own configuration keeps it below.
func TestSpacingIsByTheOverride(t *testing.T) {
	const spacing = 100 * time.Millisecond
	ten := throttle.Limit{Max: 10, Per: time.Second}
	hard := throttle.Limit{Max: 10, Per: time.Second, Hard: true}
	for name, c := range map[string]struct {
		limit    throttle.Limit
		override Override
		want     string
	}{
		"none":                    {ten, Override{}, ""},
		"lower":                   {ten, Override{Max: 2}, limitDocument},
		"raised":                  {ten, Override{Max: 40}, limitDocument},
		"raised in another time":  {ten, Override{Max: 40, Per: 2 * time.Second}, limitDocument},
		"raised as far as may be": {ten, Override{Max: 10 * int(ceiling.MaxRaise)}, limitDocument},
		"raised too far":          {ten, Override{Max: 10*int(ceiling.MaxRaise) + 1}, ""},
		"the same number sooner":  {ten, Override{Max: 10, Per: time.Second / 65}, ""},
		"hard and lower":          {hard, Override{Max: 2}, limitDocument},
		"hard and raised":         {hard, Override{Max: 11}, ""},
	} {
		x := ceilingOf(limitOf(t, c.limit), c.override)
		require.Equal(t, c.want, x.pacedFor(spacing), name)
		require.Empty(t, x.pacedFor(0), "%s, without permits", name)
	}
}

// The shares of a pool come to no more than its ceiling, whatever that is, whoever is
// configured with what.
func TestEffectiveSharesAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range testkit.Fewer(1000) {
		n := 1 + rng.IntN(50)
		o := Override{Max: rng.IntN(3) * (1 + rng.IntN(1_000_000)), Per: time.Duration(1+rng.IntN(100_000)) * time.Millisecond}
		left, total, most := driver.Whole, 0.0, 0.0
		for i := range n {
			l := throttle.Limit{Max: 1 + rng.IntN(1_000_000), Per: time.Duration(1+rng.IntN(10_000)) * time.Millisecond}
			if l.Validate() != nil {
				continue
			}
			c := ceilingOf(limitOf(t, l), o)
			held := min(left, driver.Share(rng.Int64N(int64(driver.Whole)))/driver.Share(n)*2)
			if i == n-1 {
				held = left
			}
			left -= held
			share, tokens := c.apply(&core{}, held, 0, 0)
			require.LessOrEqual(t, share, sharing.MaxShare)
			require.GreaterOrEqual(t, share, int64(0))
			perSecond := float64(l.Max) / l.Per.Seconds()
			if tokens == 0 {
				tokens = float64(l.Max)
			}
			total += float64(share) / float64(driver.Whole) * perSecond
			most = max(most, tokens/l.Per.Seconds())
		}
		require.LessOrEqual(t, total, most*(1+1e-12), "%+v", o)
		if o.Max > 0 {
			require.LessOrEqual(t, total, float64(o.Max)/o.Per.Seconds()*(1+1e-9), "%+v", o)
		}
	}
}

// apply is the worth of the share in force.
func (p *Processor) apply(now, ahead time.Duration) (share int64, tokens float64) {
	return p.ceiling.apply(&p.core, p.Held(now), now, ahead)
}

// ask plays one request and its answer, of a store that never freezes.
func (p *Processor) ask(t *testing.T, r *driver.Record, now time.Duration, o Observation) driver.Request {
	t.Helper()
	o.Demand, o.Offered = driver.Whole, max(o.Offered, 1) // it has a share
	req := p.Request(now, uint64(now)+1, o)
	ans, _ := r.Sync(&req, driver.At{Now: after(now).Now})
	require.NoError(t, p.Take(now, ans, "fresh"))
	return req
}

// A processor that cannot read the ramp or the backoff of a newer release stays at Min, and leaves the documents alone.
func TestForeignCeilingsAreLeftAlone(t *testing.T) {
	const strange = "9 of another time"
	r := &driver.Record{}
	l := limitOf(t, throttle.Limit{Max: 20, Min: 10, RampUpDuration: time.Minute, Mode: throttle.RampScheduled{}, Adaptive: true})
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(l)})
	p.ask(t, r, 0, Observation{})
	require.Equal(t, urgencyNow, p.urgency, "the ramp is not on record yet")
	p.ask(t, r, 100*time.Millisecond, Observation{})
	require.NotEqual(t, urgencyNow, p.urgency)
	for _, name := range []string{rampDocument, backoffDocument} {
		held := recorded(r, name).Version
		_, _, err := r.Save(&driver.DocumentReport{Name: name, Version: driver.NextVersion(held, 1), Base: held, Body: []byte(strange)}, driver.At{})
		require.NoError(t, err)
	}
	for i := range 20 {
		p.ask(t, r, time.Duration(i+1)*time.Second, Observation{Served: sharing.Served{Refused: 20, Active: true}})
	}
	require.Equal(t, strange, string(recorded(r, rampDocument).Body))
	require.Equal(t, strange, string(recorded(r, backoffDocument).Body))
	_, tokens := p.apply(20*time.Second, 0)
	require.InDelta(t, 10, tokens, 0)
	require.Equal(t, driver.Whole, p.Held(20*time.Second), "the share is renewed")
}

// One step a second, however many processors there are and however often they ask.
func TestRampMovesOnceASecond(t *testing.T) {
	r := &driver.Record{}
	l := limitOf(t, throttle.Limit{Max: 1000, Min: 10, RampUpDuration: time.Hour})
	var ps []*Processor
	for i := range 5 {
		p := NewProcessor(ProcessorConfig{Pool: "pool", ID: fmt.Sprint(i)}, fmt.Sprint("i", i))
		p.Configure(sharing.Terms{Ceiling: hook.Ceiling(l)})
		ps = append(ps, p)
	}
	changes, last := 0, driver.Version(0)
	for now := time.Duration(0); now < 100*time.Second; now += 100 * time.Millisecond {
		for i, p := range ps {
			p.ask(t, r, now+time.Duration(i)*time.Millisecond, Observation{})
		}
		if v := recorded(r, rampDocument).Version; v != last {
			changes, last = changes+1, v
		}
	}
	require.InDelta(t, 105, changes, 8)
}

// At the top there is nothing to do, unless the limit changes.
func TestRampAtTheTopWritesNothing(t *testing.T) {
	r := &driver.Record{}
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	l := limitOf(t, throttle.Limit{Max: 20, Min: 10, RampUpDuration: 5 * time.Second, Mode: throttle.RampScheduled{}})
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(l)})
	now := time.Duration(0)
	ask := func(n int) {
		for range n {
			now += time.Second
			p.ask(t, r, now, Observation{})
		}
	}
	ask(10)
	at := recorded(r, rampDocument).Version
	ask(100)
	require.Equal(t, at, recorded(r, rampDocument).Version)
	_, tokens := p.apply(now, 0)
	require.Zero(t, tokens, "the configured limit")

	_, _, err := r.Save(&driver.DocumentReport{Name: limitDocument, Version: 7, Base: 0, Body: bodyOf(t, Override{Max: 40, Per: time.Second})}, driver.At{})
	require.NoError(t, err)
	ask(1)
	_, tokens = p.apply(now, 0)
	require.Zero(t, tokens, "what the pool was used to goes on: 20")
	ask(2)
	_, tokens = p.apply(now, 0)
	require.InDelta(t, 31, tokens, 7, "and rises by the slope to the new limit: (40 - 10) / 5 s")
	ask(6)
	_, tokens = p.apply(now, 0)
	require.InDelta(t, 40, tokens, 0)
}

// What a frozen store answers of calls under way is no share to begin more with.
func TestCallsUnderWayAreNoShareInAFrozenPool(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a", Policy: Even}, "1")
	r := &driver.Record{}
	sync := func(now time.Duration, identity string, inUse driver.Share) driver.Request {
		req := p.Request(now, uint64(now)+1, Observation{Demand: driver.Whole, InUse: inUse})
		at := after(now)
		at.Identity, at.Remembers = identity, map[string]time.Duration{"one": remembers}[identity]
		ans, _ := r.Sync(&req, at)
		require.NoError(t, p.Take(now, ans, "fresh"))
		return req
	}
	sync(0, "one", 0)
	require.Equal(t, driver.Whole, p.Held(0))
	other := NewProcessor(ProcessorConfig{Pool: "pool", ID: "b", Policy: Even}, "1")
	for now := time.Second; now < 4*time.Second; now += time.Second {
		sync(now, "one", driver.Whole*8/10)
		req := other.Request(now, uint64(now)+7, Observation{Demand: driver.Whole})
		a := after(now)
		a.Identity = "one"
		ans, _ := r.Sync(&req, a)
		require.NoError(t, other.Take(now, ans, "fresh"))
	}
	require.Equal(t, driver.Whole/2, p.Held(4*time.Second))
	require.LessOrEqual(t, other.Held(4*time.Second), driver.Whole*2/10, "what is in use stays claimed")

	*r = driver.Record{} // by a server that remembers nothing
	for now := 4 * time.Second; now < 8*time.Second; now += time.Second {
		req := sync(now, "two", driver.Whole*8/10)
		require.Equal(t, driver.Whole*8/10, req.InUse)
		require.Equal(t, driver.Whole/2, p.Held(now), "no slot more than the lease had")
	}
}

// A ceiling that falls counts before it has fallen, for as long as a caller may be late; one
// that rises never before it has risen.
func TestFallingCeilingCountsAhead(t *testing.T) {
	const ahead = 200 * time.Millisecond
	l := limitOf(t, throttle.Limit{Max: 200, Min: 100, RampUpDuration: 10 * time.Second, Mode: throttle.RampGoBackN{}})
	for _, c := range []struct {
		name     string
		from, to int64
	}{{"rising", 4_000_000, 5_000_000}, {"falling", 5_000_000, 4_000_000}} {
		t.Run(c.name, func(t *testing.T) {
			x, pool := ceilingOf(l, Override{}), core{clock: poolClock{answers: 2, clamp: 2500 * time.Millisecond}}
			x.law.Ramp.State = ramp.State{From: c.from, To: c.to, Base: c.to, Min: 100, Max: 200, Per: 1e6, Ramp: 1e7}
			line := x.law.RampConfig().Ceiling(x.law.Ramp.State)
			for now := time.Duration(0); now < 2*time.Second; now += 10 * time.Millisecond {
				_, tokens := x.apply(&pool, driver.Whole, now, ahead)
				for late := time.Duration(0); late <= ahead; late += 50 * time.Millisecond {
					require.LessOrEqual(t, tokens, line.At((now+late).Microseconds())+1e-9)
				}
				require.GreaterOrEqual(t, tokens, line.At((now+ahead).Microseconds())-2.1)
			}
		})
	}
}

// Between two answers the ceiling of a ramp that needs traffic moves on for the second
// that is known, and no further.
func TestCeilingIsNotAnticipatedWithoutTheStore(t *testing.T) {
	l := limitOf(t, throttle.Limit{Max: 200, Min: 100, RampUpDuration: 100 * time.Second})
	x, c := ceilingOf(l, Override{}), &core{clock: poolClock{answers: 2, clamp: 2500 * time.Millisecond}}
	x.law.Ramp.State = ramp.State{From: 5_000_000, To: 6_000_000, Base: 6_000_000, Min: 100, Max: 200, Per: 1e6, Ramp: 1e8}
	require.InDelta(t, 105.5, x.tokens(c, 500*time.Millisecond, 0), 1e-9)
	require.InDelta(t, 106, x.tokens(c, time.Hour, 0), 1e-9)
	_, due := x.stepRamp(c, time.Hour, false)
	require.False(t, due, "nobody knows what time it is")
	_, due = x.stepRamp(c, 2*time.Second, false)
	require.True(t, due)
}

// What the store has lost it gets back at once, not an interval later.
func TestLostDocumentIsGivenBackAtOnce(t *testing.T) {
	r := &driver.Record{}
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, throttle.Limit{Max: 20}))})
	p.ask(t, r, 0, Observation{})
	_, _, err := r.Save(&driver.DocumentReport{Name: limitDocument, Version: 7, Base: 0, Body: bodyOf(t, Override{Max: 5})}, driver.At{})
	require.NoError(t, err)
	p.ask(t, r, time.Second, Observation{})
	require.InDelta(t, p.Interval(), p.Next(time.Second, 1)-time.Second, float64(time.Millisecond), "nothing to say")
	r.Documents = nil
	p.ask(t, r, 2*time.Second, Observation{})
	now := p.Next(2*time.Second, 1)
	require.LessOrEqual(t, now, 2*time.Second+p.fast())
	p.ask(t, r, now, Observation{})
	require.Equal(t, driver.Version(7), recorded(r, limitDocument).Version)
}

// A processor that cannot read the limit leaves its share to those who can, and does not
// ask more often for what it would not take.
func TestUnreadableLimitWantsNothing(t *testing.T) {
	r := &driver.Record{}
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, throttle.Limit{Max: 20}))})
	p.ask(t, r, 0, Observation{})
	require.Equal(t, driver.Whole, p.Held(0))
	_, _, err := r.Save(&driver.DocumentReport{Name: limitDocument, Version: 7, Base: 0, Body: []byte("?")}, driver.At{})
	require.NoError(t, err)
	now := time.Second
	for ; now < driver.DefaultLease+2*time.Second; now += time.Second {
		p.ask(t, r, now, Observation{})
	}
	require.Zero(t, p.Held(now))
	p.ask(t, r, now, Observation{}) // tells it
	require.Zero(t, r.Claims(), "the others can have it")
	p.Poke(now)
	require.Greater(t, p.Next(now, 0), now+p.fast())
	require.ErrorContains(t, p.unreadable(), "is not an override")
}

// A store that learns its time late cannot tell with the first answer whether the pool has
// just begun. Until it can, the ramp of the pool before it counts for nothing.
func TestFirstAnswerOfAPoolThatMayHaveBegun(t *testing.T) {
	r := &driver.Record{}
	l := limitOf(t, throttle.Limit{Max: 20, Min: 10, RampUpDuration: 10 * time.Second, Mode: throttle.RampScheduled{}})
	deferred, written := true, int64(0)
	ask := func(p *Processor, now time.Duration) {
		req := p.Request(now, uint64(now)+1, Observation{Demand: driver.Whole, Offered: 1}) // it has a share
		at := driver.At{Now: written, Deferred: deferred}
		written = after(now).Now
		ans, _ := r.Sync(&req, at)
		require.NoError(t, p.Take(now, ans, "fresh"))
	}
	a := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	a.Configure(sharing.Terms{Ceiling: hook.Ceiling(l)})
	for now := time.Duration(0); now < 40*time.Second; now += time.Second { // a ramp stands still in the freeze
		ask(a, now)
	}
	_, tokens := a.apply(40*time.Second, 0)
	require.Zero(t, tokens, "at the top")
	leave := a.Leave(40 * time.Second)
	r.Leave(&leave, driver.At{Now: written, Deferred: true})

	b := NewProcessor(ProcessorConfig{Pool: "pool", ID: "b"}, "2")
	b.Configure(sharing.Terms{Ceiling: hook.Ceiling(l)})
	for i := range 5 {
		now := 60*time.Second + time.Duration(i)*100*time.Millisecond
		ask(b, now)
		_, tokens = b.apply(now, 0)
		require.InDelta(t, 10, tokens, 0.5, "answer %d", i+1)
	}
}

// A ramp that had arrived wrote nothing for long. When the limit rises, it goes up from
// there, and the time at the top counts for nothing.
func TestLimitRisesAfterLongAtTheTop(t *testing.T) {
	r := &driver.Record{}
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, throttle.Limit{
		Max: 20, Min: 10, RampUpDuration: time.Minute,
		Mode: throttle.RampScheduled{},
	}))})
	other := NewProcessor(ProcessorConfig{Pool: "pool", ID: "b"}, "2")
	other.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, throttle.Limit{Max: 10}))})
	now := time.Duration(0)
	for ; now < 10*time.Minute; now += time.Second {
		p.ask(t, r, now, Observation{})
		other.ask(t, r, now, Observation{})
	}
	_, tokens := p.apply(now, 0)
	require.InDelta(t, 10, tokens, 0, "the lowest limit is that of b")
	leave := other.Leave(now)
	r.Leave(&leave, driver.At{Now: after(now).Now})
	for range 12 {
		now += time.Second
		p.ask(t, r, now, Observation{})
	}
	_, tokens = p.apply(now, 0)
	require.InDelta(t, 12, tokens, 0.5, "by a sixth for each second")
}

// A store that does not take what it lacks is not asked for ever more often.
func TestStoreThatTakesNothingIsNotPressed(t *testing.T) {
	r := &driver.Record{}
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, throttle.Limit{Max: 20, Min: 10}))})
	p.ask(t, r, 0, Observation{})
	for i := range wire.MaxDocuments {
		_, _, err := r.Save(&driver.DocumentReport{Name: fmt.Sprint("full", i), Version: 7, Base: 0, Body: []byte("x")}, driver.At{})
		require.NoError(t, err)
	}
	asked := 0
	for now := p.Next(0, 1); now < 20*time.Second; now = p.Next(now, 1) {
		p.ask(t, r, now, Observation{})
		asked++
	}
	require.LessOrEqual(t, asked, 23)
	_, tokens := p.apply(20*time.Second, 0)
	require.InDelta(t, 10, tokens, 0, "and the ramp stands at min")
}
