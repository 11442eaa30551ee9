package protocol

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/wire"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// News of a pause may be written by the clock of a store that has begun again, of which the processor has heard nothing
// yet: the pause counts from when it is heard, whatever the clocks say. Heard once more, it does not last longer.
func TestNewsByAnotherClock(t *testing.T) {
	for name, at := range map[string]int64{"far behind": 1, "far ahead": 1 << 50, "its own": 5_000_000_000, "none": 0} {
		t.Run(name, func(t *testing.T) {
			p := &pausing{}
			received := moment{now: 10 * time.Second, logical: 5_000_000_000, clamp: time.Second}
			news := &pauseList{entries: []entry{{at: at, left: 5 * time.Second, reason: "told"}}}
			p.notify(received, 7, news)
			require.Len(t, p.inForce(received.now+4*time.Second), 1)
			again := received
			again.now += 4 * time.Second
			p.notify(again, 7, news)
			require.Empty(t, p.inForce(received.now+5*time.Second))
		})
	}
}

// A store that was emptied has another clock, by which what was written before may look as if it were over; and it may be
// given back pauses by a processor that had not heard of the newest. Who knows of that goes on, and asks for it again.
func TestAPauseOutlastsTheStoresClock(t *testing.T) {
	const at = int64(5_000_000_000)
	recorded := func(v driver.Version, pauses string) pooldoc.Held {
		return pooldoc.Held{Document: driver.Document{Name: pauseDocument, Version: v, Body: []byte(`{"pauses":[` + pauses + `],"resumed":1}`)}}
	}
	for name, c := range map[string]struct {
		logical, began int64
		slept          time.Duration
		paused         bool
	}{
		"goes on":                  {at + 2_000_000, 0, 0, true},
		"far ahead":                {at + 9_000_000_000, 0, 0, true},
		"far behind":               {1, 0, 0, true},
		"the pool slept meanwhile": {at + 2_000_000, at + 1_000_000, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pausing{}
			m := moment{now: 10 * time.Second, logical: at, clamp: time.Second}
			p.load(m, m.now, recorded(7, `{"at_us":5000000000,"left_us":40000000,"reason":"told"}`))
			require.Len(t, p.inForce(m.now), 1)
			m = moment{now: 12 * time.Second, logical: c.logical, began: c.began, slept: c.slept, clamp: time.Second}
			p.load(m, m.now, recorded(8, ""))
			require.Equal(t, c.paused, len(p.inForce(m.now)) == 1)
			require.Equal(t, c.paused, len(p.wishes) == 1, "it is asked for again")
		})
	}
}

// A pause that was asked for here ends when somebody resumes afterwards, and that is what the record says, not what the
// news said before: they may be of a record that the store has lost, whose versions were far higher.
func TestWhoResumesEndsAPause(t *testing.T) {
	const second = time.Second
	recorded := func(v, resumed driver.Version) pooldoc.Held {
		return pooldoc.Held{Document: driver.Document{Name: pauseDocument, Version: v, Body: fmt.Appendf(nil, `{"pauses":[],"resumed":%d}`, resumed)}}
	}
	type news struct{ version, resumed driver.Version }
	old, present := news{9000, 8000}, news{14, 12}
	for name, c := range map[string]struct {
		before   []news         // heard a second before another pause is asked for, which this one takes the place of
		received []news         // before the pause
		shown    []pooldoc.Held // by the answers after the pause, a second apart
		paused   bool
	}{
		"nobody resumes":                      {shown: []pooldoc.Held{recorded(10, 5), recorded(10, 5)}, paused: true},
		"resumed before, as the record shows": {shown: []pooldoc.Held{recorded(11, 5)}, paused: true},
		"resumed afterwards":                  {shown: []pooldoc.Held{recorded(12, 12)}},
		"resumed before, as the news said":    {received: []news{present}, shown: []pooldoc.Held{recorded(12, 12), recorded(14, 12)}, paused: true},
		"an answer that was late":             {received: []news{present}, shown: []pooldoc.Held{recorded(11, 11), recorded(14, 12)}, paused: true},
		"resumed again, after the news":       {received: []news{present}, shown: []pooldoc.Held{recorded(15, 15)}},
		"news of a record that is lost":       {received: []news{old}, shown: []pooldoc.Held{recorded(10, 5), recorded(11, 5), recorded(12, 12)}},
		"news of it that nobody has resumed":  {received: []news{{9000, 5}}, shown: []pooldoc.Held{recorded(11, 11)}},
		"the lost record is back": {
			received: []news{old}, shown: []pooldoc.Held{recorded(10, 5), recorded(11, 5), recorded(9000, 8000)}, paused: true,
		},
		"news of both records": {received: []news{present, old}, shown: []pooldoc.Held{recorded(10, 5), recorded(14, 12)}, paused: true},
		"news of both, one after the other": {
			before: []news{old}, received: []news{present}, paused: true, shown: []pooldoc.Held{recorded(10, 5), recorded(14, 12)},
		},
		"news of both, and resumed afterwards": {
			before: []news{old}, received: []news{present}, shown: []pooldoc.Held{recorded(10, 5), recorded(15, 15), recorded(15, 15)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pausing{}
			m := moment{now: 10 * second, logical: 5_000_000_000, clamp: second / 4}
			pass := func() { m.now, m.logical = m.now+second, m.logical+1_000_000 }
			p.load(m, m.now, recorded(10, 5))
			ask := func(received []news) {
				for _, n := range received {
					p.notify(m, n.version, &pauseList{resumed: n.resumed})
				}
				p.ask(LocalPause{Reason: "asked", End: Forever}, 0)
			}
			if c.before != nil {
				ask(c.before)
				pass()
				p.load(m, m.now, recorded(10, 5))
			}
			ask(c.received)
			for _, b := range c.shown {
				asked := m.now
				pass()
				p.load(m, asked, b)
			}
			require.Equal(t, c.paused, len(p.inForce(m.now)) == 1)
		})
	}
}

// The resumptions that are remembered are the newest, each once.
func TestResumptionsRemembered(t *testing.T) {
	var list []driver.Version
	for r := range driver.Version(100) {
		held := list
		list = remember(list, r, r)
		require.LessOrEqual(t, len(list), maxResumed)
		require.Equal(t, r > 0, slices.Contains(list, r))
		require.NotContains(t, held, r, "who holds the list sees no change")
	}
	require.Equal(t, []driver.Version{92, 93, 94, 95, 96, 97, 98, 99}, list)
}

// What was on record and is not any more is asked for again, until somebody resumes: also when the news said something newer,
// or told of that, for it was paused before.
func TestWhoResumesEndsAPauseThatWasLost(t *testing.T) {
	recorded := func(v driver.Version, pauses string, resumed driver.Version) pooldoc.Held {
		return pooldoc.Held{Document: driver.Document{Name: pauseDocument, Version: v, Body: fmt.Appendf(nil, `{"pauses":[%s],"resumed":%d}`, pauses, resumed)}}
	}
	m := moment{now: 10 * time.Second, logical: 5_000_000_000, clamp: time.Second}
	reported := recorded(7, `{"reason":"told"}`, 0)
	for name, news := range map[string]*pauseList{"no news": nil, "of nobody": {}, "of that": {resumed: 9}} {
		t.Run(name, func(t *testing.T) {
			p := &pausing{}
			p.load(m, m.now, reported)
			if news != nil {
				p.notify(m, 9000, news)
			}
			p.load(m, m.now, recorded(8, "", 0))
			require.Len(t, p.wishes, 1, "it is asked for again")
			p.load(m, m.now, recorded(9, "", 9))
			require.Empty(t, p.inForce(m.now))
		})
	}
	t.Run("and is asked for here", func(t *testing.T) {
		p := &pausing{}
		p.load(m, m.now, reported)
		p.notify(m, 9000, &pauseList{resumed: 9})
		p.ask(LocalPause{Reason: "asked", End: m.now + time.Minute}, 0) // by who knew that somebody had resumed
		p.load(m, m.now, recorded(8, "", 0))
		p.load(m, m.now, recorded(9, "", 9))
		require.Len(t, p.inForce(m.now), 1)
	})
}

// A notification is read as it was written, up to its bounds. What is neither a pause nor a receipt is of another release.
func TestWhichNotificationsAreRead(t *testing.T) {
	for _, n := range []Notification{{From: "p", Version: 7, Pauses: &pauseList{resumed: 3}}, {From: "p", Version: wire.MaxVersion, ID: "a"}} {
		text, err := n.Encode()
		require.NoError(t, err)
		text = append(text, bytes.Repeat([]byte(" "), wire.MaxNewsBytes-len(text))...)
		read, err := ParseNotification(text)
		require.NoError(t, err)
		require.Equal(t, n, read)
		_, err = ParseNotification(append(text, ' '))
		require.ErrorContains(t, err, "allowed: at most 8192")
	}
	for text, fault := range map[string]string{
		`{"form":2,"from":"p","version":7,"receipt":"YQ=="}`:                       "not news of this release",
		`{"form":1,"from":"","version":7,"receipt":"YQ=="}`:                        "not news of this release",
		`{"form":1,"from":"p","version":0,"receipt":"YQ=="}`:                       "not news of this release",
		`{"form":1,"from":"p","version":9223372036854775808,"receipt":"YQ=="}`:     "not news of this release",
		`{"form":1,"from":"p","version":7,"receipt":"YQ=="}{}`:                     "more than one value",
		`{"form":1,"from":"p","version":7,"receipt":"YQ==","more":1}`:              "unknown field",
		`{"form":1,"from":"p","version":7}`:                                        "neither a pause nor a receipt",
		`{"form":1,"from":"p","version":7,"receipt":"AA=="}`:                       "neither a pause nor a receipt",
		`{"form":1,"from":"p","version":7,"receipt":"YQ==","pause":{"pauses":[]}}`: "neither a pause nor a receipt",
		`{"form":1,"from":"p","version":7,"pause":{"pauses":[{"left_us":-1}]}}`:    "time out of bounds",
	} {
		_, err := ParseNotification([]byte(text))
		require.ErrorContains(t, err, fault, text)
	}
	_, err := PauseNotification("p", &driver.DocumentReport{Version: 7, Body: []byte(`{"of":"a later release"}`)})
	require.Error(t, err)
	full := pauseList{entries: make([]entry, bounds.MaxPausedTags+1)}
	_, err = (&Notification{From: "p", Version: 7, Pauses: &full}).Encode()
	require.Error(t, err)
	require.ErrorIs(t, Push(t.Context(), struct{ driver.Store }{}, "p", nil), driver.ErrNoPush)
}
