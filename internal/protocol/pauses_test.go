package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// wroteAt is the logical time at which the pauses of these tests are written, and pauseMoment the present then, with a clamp of a second.
const wroteAt = int64(5_000_000_000)

func pauseMoment() moment { return moment{now: 10 * sec, logical: wroteAt, clamp: sec} }

// plus is the moment d later, by both clocks.
func (m moment) plus(d time.Duration) moment {
	m.now, m.logical = m.now+d, m.logical+d.Microseconds()
	return m
}

// heldPauses are the pauses on record.
func heldPauses(t *testing.T, v driver.Version, n pauseList) pooldoc.Held {
	t.Helper()
	return pooldoc.Held{Document: pauseDocumentOf(t, v, n)}
}

// recordedPauses is what a processor knows that has loaded them.
func recordedPauses(t *testing.T, m moment, v driver.Version, n pauseList) *pausing {
	t.Helper()
	p := &pausing{}
	p.load(m, m.now, heldPauses(t, v, n))
	return p
}

// A notification counts while the process that pushed it can still save it, or until a record as new is known.
func TestHowLongANotificationCounts(t *testing.T) {
	m := pauseMoment()
	timeout := notifiedFor(4 * m.clamp)
	require.Equal(t, 4*sec/6, timeout)
	for name, c := range map[string]struct {
		asked   time.Duration
		version driver.Version
		counts  bool
	}{
		"it may be under way": {m.now + timeout - 1, 8, true},
		"it was not saved":    {m.now + timeout, 8, false},
		"it is on record":     {m.now, 9, false},
		"something newer is":  {m.now, 10, false},
	} {
		p := recordedPauses(t, m, 8, pauseList{})
		p.notify(m, 9, new(tagsPaused(1)))
		require.EqualValues(t, 9, p.receipt())
		p.load(m.plus(sec), c.asked, heldPauses(t, c.version, pauseList{}))
		require.Equal(t, c.counts, p.has(m.now+sec, "t0"), name)
	}
}

// A notification that is not newer than what is known changes nothing; of several the latest ends count.
func TestNotificationsAddUp(t *testing.T) {
	m := pauseMoment()
	p := recordedPauses(t, m, 8, pauseList{})
	for _, c := range []struct {
		version driver.Version
		tag     string
		left    time.Duration
	}{{8, "known", sec}, {9, "a", 3 * sec}, {9, "again", sec}, {10, "a", 2 * sec}, {11, "b", 0}} {
		p.notify(m, c.version, &pauseList{entries: []entry{{tag: c.tag, left: c.left}}, resumed: c.version - 5})
	}
	require.Equal(t, []LocalPause{{Tag: "a", End: m.now + 3*sec}, {Tag: "b", End: Forever}}, p.inForce(m.now))
	require.Equal(t, []driver.Version{4, 5, 6}, p.resumed)
	require.Equal(t, []LocalPause{{Tag: "b", End: Forever}}, p.inForce(m.now+3*sec), "the first is over")
	p.unreadable = driver.ErrNoPool
	require.Zero(t, p.receipt(), "it has not stopped for what it cannot read")
}

// A pause asked for here ends at its time, or by a resumption that is newer than the record known when it was asked for.
func TestWhatEndsAnOwnPause(t *testing.T) {
	m := pauseMoment()
	for name, c := range map[string]struct {
		end     time.Duration
		resumed driver.Version
		ends    bool
	}{
		"nothing":              {m.now + sec + 1, 0, false},
		"its time":             {m.now + sec, 0, true},
		"a resumption":         {Forever, 9, true},
		"one that was known":   {Forever, 8, false},
		"one that was told of": {Forever, 7, false},
	} {
		p := recordedPauses(t, m, 8, pauseList{resumed: 8})
		p.resumed = []driver.Version{7}
		p.ask(LocalPause{End: c.end}, 0)
		p.load(m.plus(sec), m.now, heldPauses(t, 9, pauseList{resumed: c.resumed}))
		require.Equal(t, c.ends, len(p.wishes) == 0, name)
	}
}

// A pause is written again that counts from when it was read, once there is a clock, and one that the clock does not count because the pool
// slept. A pause without an end needs no clock.
func TestWhichPausesAreWrittenAgain(t *testing.T) {
	m := pauseMoment()
	slept := m
	slept.began, slept.slept = wroteAt-5, 2*sec
	none := m
	none.logical = 0
	for name, c := range map[string]struct {
		e     entry
		m     moment
		stale bool
	}{
		"by the clock":            {entry{at: wroteAt, left: time.Hour}, m, false},
		"without a time":          {entry{left: time.Hour}, m, true},
		"there is no clock":       {entry{left: time.Hour}, none, false},
		"without an end":          {entry{}, m, false},
		"the pool slept":          {entry{at: wroteAt - 10, left: time.Hour}, slept, true},
		"before it was written":   {entry{at: wroteAt - 5, left: time.Hour}, slept, false},
		"it had no end meanwhile": {entry{at: wroteAt - 10}, slept, false},
	} {
		for _, more := range []entry{{tag: "x"}, {tag: "x", at: wroteAt, left: time.Hour}} {
			p := &pausing{}
			p.replace(c.m, heldPauses(t, 7, pauseList{entries: []entry{c.e, more}}))
			require.Equal(t, c.stale, p.stale, name)
			p.replace(c.m, heldPauses(t, 8, pauseList{entries: []entry{more}}))
			require.False(t, p.stale, name)
		}
	}
	p := recordedPauses(t, m, 7, tagsPaused(2))
	doc := driver.Document{Name: pauseDocument, Version: 8, Body: []byte("?")}
	p.load(m, m.now, pooldoc.Held{Document: doc})
	require.Error(t, p.readable())
	require.Len(t, p.inForce(m.now), 2, "the previous pauses stay")
	p.load(m, m.now, heldPauses(t, 9, tagsPaused(1)))
	require.NoError(t, p.readable())
}

// What is missing from a record although nobody has resumed is asked for again, unless it may be over for its authors.
func TestWhatIsMissingIsAskedForAgain(t *testing.T) {
	m := pauseMoment()
	for name, c := range map[string]struct {
		left    time.Duration
		resumed driver.Version
		now     pauseList
		again   bool
	}{
		"it goes on":           {sec + time.Microsecond, 7, pauseList{}, true},
		"it may be over":       {sec, 7, pauseList{}, false},
		"somebody has resumed": {time.Hour, 8, pauseList{resumed: 8}, false},
		"it is there":          {time.Hour, 7, tagsPaused(1), false},
		"another is":           {time.Hour, 7, pauseList{entries: []entry{{tag: "x"}}}, true},
	} {
		p := recordedPauses(t, m, 7, pauseList{entries: []entry{{tag: "t0", at: wroteAt, left: c.left}}})
		c.now.resumed = c.resumed
		p.load(m, m.now, heldPauses(t, 8, c.now))
		require.Equal(t, c.again, len(p.wishes) == 1, name)
		if c.again {
			require.Equal(t, wish{LocalPause: LocalPause{Tag: "t0", End: m.now + c.left, Until: p.wishes[0].Until}, base: 8}, p.wishes[0], name)
		}
	}
}

// A document that replaces an older one on record takes its pauses with it, as far as they go on and nobody has ended them.
func TestWhatIsTakenFromTheRecordThatIsReplaced(t *testing.T) {
	m := pauseMoment()
	const left = time.Minute
	end := m.now + left
	for name, c := range map[string]struct {
		seen  pauseList
		known pauseList
		wish  LocalPause // asked for before
		want  string     // its reason
	}{
		"a pause":                    {want: "seen"},
		"it is over":                 {seen: pauseList{entries: []entry{{tag: "x", at: 1, left: sec}}}},
		"it is known":                {known: pauseList{entries: []entry{{tag: "x", reason: "known"}}}, want: "known"},
		"somebody has resumed since": {known: pauseList{resumed: 6}},
		"or just before":             {known: pauseList{resumed: 5}, want: "seen"},
		"a longer one is asked for":  {wish: LocalPause{Tag: "x", Reason: "own", End: end + 1}, want: "own"},
		"one as long":                {wish: LocalPause{Tag: "x", Reason: "own", End: end}, want: "own"},
		"a shorter one":              {wish: LocalPause{Tag: "x", Reason: "own", End: end - 1}, want: "seen"},
		"one of another tag":         {wish: LocalPause{Tag: "y", Reason: "own", End: end}, want: "seen"},
	} {
		t.Run(name, func(t *testing.T) {
			p := recordedPauses(t, m, 9, c.known)
			if c.wish.End > 0 {
				p.ask(c.wish, 0)
			}
			if c.seen.entries == nil {
				c.seen.entries = []entry{{tag: "x", reason: "seen", at: wroteAt, left: left}}
			}
			held := heldPauses(t, 9, c.known)
			held.Lost, held.Seen = true, pauseDocumentOf(t, 5, c.seen)
			p.load(m, m.now, held)
			reason := ""
			for _, s := range p.inForce(m.now) {
				if s.Tag == "x" {
					reason = s.Reason
				}
			}
			require.Equal(t, c.want, reason)
			require.Equal(t, reason != "" && reason != "known", len(p.wishes) > 0)
		})
	}
	p := recordedPauses(t, m, 9, pauseList{resumed: 3})
	held := heldPauses(t, 9, pauseList{resumed: 3})
	held.Lost, held.Seen = true, pauseDocumentOf(t, 5, pauseList{resumed: 4})
	p.load(m, m.now, held)
	require.EqualValues(t, 4, p.recorded.resumed, "the newest resumption of both")
	held.Seen.Body = []byte("?")
	p.load(m, m.now, held)
	require.Empty(t, p.inForce(m.now))
	held.Seen = pauseDocumentOf(t, 5, tagsPaused(1))
	p.unreadable = driver.ErrNoPool
	p.load(m, m.now, held)
	require.Empty(t, p.inForce(m.now), "what it cannot read replaces nothing")
}

// The end of a pause follows the pool's clock, unless that has lost time: then the pause is written again, with its end here.
func TestAPauseFollowsThePoolsClock(t *testing.T) {
	const left = time.Minute
	for name, c := range map[string]struct {
		at    int64
		left  time.Duration
		local time.Duration // passed
		pool  time.Duration
		slept time.Duration
		end   time.Duration // later than without anything lost
		stale bool
	}{
		"both count alike":        {wroteAt, left, 10 * sec, 10 * sec, 0, 0, false},
		"the pool is behind":      {wroteAt, left, 10 * sec, 9 * sec, 0, sec, false},
		"it has lost time":        {wroteAt, left, 10 * sec, 9*sec - time.Microsecond, 0, 0, true},
		"but the pause is over":   {wroteAt, left, left, sec, 0, 0, false},
		"the pool is ahead":       {wroteAt, left, 10 * sec, 15 * sec, 0, -5 * sec, false},
		"it has slept":            {wroteAt, left, 10 * sec, 10 * sec, 20 * sec, -20 * sec, true},
		"until the pause is over": {wroteAt, left, 10 * sec, 10 * sec, left, 10*sec - left, false},
		"without a time":          {0, left, 10 * sec, 10 * sec, 0, 0, true},
		"that one is over":        {0, left, left, left, 0, 0, false},
	} {
		m := pauseMoment()
		p := &pausing{}
		n := pauseList{entries: []entry{{tag: "forever"}, {at: c.at, left: c.left}}}
		p.load(m, m.now, heldPauses(t, 7, n))
		before := p.stops[1].End
		p.stale = false
		m.now, m.logical, m.slept = m.now+c.local, m.logical+c.pool.Microseconds(), c.slept
		if c.slept > 0 {
			m.began = wroteAt + 1
		}
		p.load(m, m.now, heldPauses(t, 7, n))
		require.Equal(t, before+c.end, p.stops[1].End, name)
		require.Equal(t, Forever, p.stops[0].End, name)
		require.Equal(t, c.stale, p.stale, name)
		p.stale = true
		p.load(m, m.now, heldPauses(t, 7, n))
		require.True(t, p.stale, "%s: it is still to be written", name)
	}
	m, n := pauseMoment(), pauseList{entries: []entry{{at: wroteAt, left: left}}}
	p := recordedPauses(t, m, 7, n)
	held := heldPauses(t, 7, n)
	m.logical, held.Lost = 10*wroteAt, true
	p.load(m, m.now, held)
	require.Equal(t, m.now+left, p.stops[0].End, "a store that has lost the record has another clock")
}

// A pause on record makes another one of its tag needless that ends no later, or hardly later.
func TestWhichPausesAreCovered(t *testing.T) {
	const now = 10 * sec
	for _, c := range []struct {
		tag       string
		on, other time.Duration // left; 0: without an end
		covered   bool
	}{
		{"x", 0, 0, true},
		{"x", 0, sec, true},
		{"x", sec, 0, false},
		{"y", 0, 0, false},
		{"x", 10 * sec, 5 * sec, true},
		{"x", 4 * sec, 4*sec + 100*ms, true},
		{"x", 4 * sec, 4*sec + 110*ms, false},
		{"x", 40 * sec, 40*sec + 125*ms, true},
		{"x", 40 * sec, 40*sec + 126*ms, false},
		{"x", -1, -2, false},
	} {
		end := func(left time.Duration) time.Duration {
			if left == 0 {
				return Forever
			}
			return now + left
		}
		p := pausing{stops: []LocalPause{{Tag: "x", End: end(c.on)}}}
		require.Equal(t, c.covered, p.covered(now, LocalPause{Tag: c.tag, End: end(c.other)}), c)
	}
	require.False(t, (&pausing{stops: []LocalPause{{End: now}}}).covered(now, LocalPause{End: now}), "it is over")
}

// Of two pauses asked for here the later end counts, and of equal ones the newer reason.
func TestOfTwoOwnPausesTheLaterEndCounts(t *testing.T) {
	for second, want := range map[time.Duration]string{8 * sec: "first", 9 * sec: "second", 10 * sec: "second"} {
		var p pausing
		p.ask(LocalPause{Tag: "x", Reason: "first", End: 9 * sec}, 0)
		p.ask(LocalPause{Tag: "y", Reason: "another", End: 20 * sec}, 0)
		copied := p
		p.ask(LocalPause{Tag: "x", Reason: "second", End: second}, 5*sec)
		require.Equal(t, []LocalPause{{Tag: "x", Reason: want, End: max(second, 9*sec)}, {Tag: "y", Reason: "another", End: 20 * sec}}, p.inForce(0))
		require.Equal(t, [2]time.Duration{5 * sec, 0}, [2]time.Duration{p.wishes[0].quiet, p.wishes[1].quiet})
		require.Equal(t, "first", copied.wishes[0].Reason, "a copy of the processor keeps its own")
		p.Release("x", true)
		require.Equal(t, [2]bool{true, false}, [2]bool{p.wishes[0].proposed, p.wishes[1].proposed})
		p.Release("x", false)
		require.True(t, p.wishes[0].proposed, "it was saved before")
		require.Zero(t, p.wishes[0].quiet)
		p.Release("y", false)
		require.False(t, p.wishes[1].proposed)
		p.Forget("x")
		require.Len(t, p.wishes, 1)
	}
}

// The latest time that the called service has asked of any other pod counts.
func TestTheLatestRetryTimeOfOthersCounts(t *testing.T) {
	c := core{Cfg: ProcessorConfig{ID: "b"}, notes: []Note{{retryAt: 5}, {retryAt: 99}, {retryAt: 9}, {retryAt: 7}}}
	c.Answer.Roster = []driver.RosterRow{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	var p pausing
	require.Equal(t, urgencyNone, p.take(&c, 0, &c.Answer))
	require.EqualValues(t, 9, p.retry.others)
	require.Equal(t, 4, p.retry.live)
}
