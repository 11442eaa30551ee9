package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A pause is proposed while it is not on record, once it is no longer being saved. What is on record may end a clamp earlier than it was
// proposed.
func TestWhenAPauseIsProposed(t *testing.T) {
	m := pauseMoment()
	for name, c := range map[string]struct {
		on       time.Duration // left of the one on record; 0: none
		end      time.Duration
		quiet    time.Duration
		proposed bool
		want     bool
	}{
		"it is asked for":            {0, m.now + 10*sec, 0, false, true},
		"it is being saved":          {0, m.now + 10*sec, m.now + 1, false, false},
		"no longer":                  {0, m.now + 10*sec, m.now, false, true},
		"a shorter one is on record": {9 * sec, m.now + 10*sec, 0, false, true},
		"as it was proposed":         {9 * sec, m.now + 10*sec, 0, true, false},
		"too short for that":         {8 * sec, m.now + 10*sec, 0, true, true},
		"it is over":                 {0, m.now, 0, false, false},
		"nearly":                     {0, m.now + 1, 0, false, true},
		"over for others":            {0, m.now + sec, 0, true, false},
		"without an end":             {10 * sec, Forever, 0, true, true},
	} {
		p := &pausing{}
		held := pooldoc.Held{Document: driver.Document{Name: pauseDocument}}
		if c.on > 0 {
			held = heldPauses(t, 7, pauseList{entries: []entry{{at: wroteAt, left: c.on}}})
		}
		p.load(m, m.now, held)
		p.wishes = []wish{{LocalPause: LocalPause{End: c.end}, quiet: c.quiet, proposed: c.proposed}}
		copied := *p
		d, ok := p.propose(m, held, 5)
		require.Equal(t, c.want, ok, name)
		require.Equal(t, c.proposed || c.want, p.wishes[0].proposed, name)
		require.Equal(t, c.proposed, copied.wishes[0].proposed)
		if !ok {
			continue
		}
		n, err := parsePauseList(d.Body)
		require.NoError(t, err)
		require.Len(t, n.entries, 1, name)
		require.Equal(t, c.end == Forever, n.entries[0].left == 0, name)
	}
}

// A document that is written for a wish has the pauses on record as they are; one that is written again has them by the present clock.
func TestWhatAProposalSays(t *testing.T) {
	m := pauseMoment()
	n := pauseList{resumed: 3, entries: []entry{{tag: "x", at: wroteAt, left: 9 * sec}, {tag: "over", at: wroteAt, left: sec}, {tag: "forever", at: wroteAt}}}
	for name, c := range map[string]struct {
		but  func(p *pausing, held *pooldoc.Held)
		ok   bool
		tags []string
		at   int64
	}{
		"nothing":           {func(*pausing, *pooldoc.Held) {}, false, nil, 0},
		"a wish":            {func(p *pausing, _ *pooldoc.Held) { p.ask(LocalPause{Tag: "y", End: Forever}, 0) }, true, []string{"x", "forever", "y"}, wroteAt},
		"a stale record":    {func(p *pausing, _ *pooldoc.Held) { p.stale = true }, true, []string{"x", "forever"}, wroteAt + 1_000_000},
		"a lost record":     {func(_ *pausing, h *pooldoc.Held) { h.Lost = true }, true, []string{"x", "forever"}, wroteAt + 1_000_000},
		"it cannot be read": {func(p *pausing, _ *pooldoc.Held) { p.stale, p.unreadable = true, driver.ErrNoPool }, false, nil, 0},
		"a wish and a stale one": {func(p *pausing, _ *pooldoc.Held) {
			p.stale = true
			p.ask(LocalPause{Tag: "y", End: Forever}, m.now+time.Hour)
		}, true, []string{"x", "forever", "y"}, wroteAt + 1_000_000},
	} {
		held := heldPauses(t, 7, n)
		p := recordedPauses(t, m, 7, n)
		c.but(p, &held)
		d, ok := p.propose(m.plus(sec), held, 5)
		require.Equal(t, c.ok, ok, name)
		if !ok {
			continue
		}
		written, err := parsePauseList(d.Body)
		require.NoError(t, err)
		require.EqualValues(t, 3, written.resumed)
		var tags []string
		for _, e := range written.entries {
			tags = append(tags, e.tag)
		}
		require.Equal(t, c.tags, tags, name)
		require.Equal(t, c.at, written.entries[0].at, name)
	}
}

// A pod's own pauses leave room for those of operators; what was on record before needs less. What finds no room is not proposed for itself.
func TestPodsLeaveRoomForOperators(t *testing.T) {
	m := pauseMoment()
	for on, want := range map[int][2]bool{11: {true, true}, 12: {false, true}, 14: {false, true}, 15: {false, false}} {
		for i, own := range []bool{true, false} {
			n := tagsPaused(on)
			p := recordedPauses(t, m, 7, n)
			p.wishes = []wish{{LocalPause: LocalPause{Tag: "x", End: Forever}, own: own}}
			_, ok := p.propose(m, heldPauses(t, 7, n), 5)
			require.Equal(t, want[i], ok, fmt.Sprint(on, own))
			require.Equal(t, want[i], p.wishes[0].proposed)
			p.wishes = append(p.wishes, wish{LocalPause: LocalPause{Tag: "t0", End: Forever}, quiet: 2 * m.now})
			_, ok = p.propose(m, heldPauses(t, 7, n), 5)
			require.Equal(t, want[i], ok && on < 15, "one that is being saved is no reason")
		}
	}
}

// A repeated request proposes no pauses: their time left was right when they were first sent.
func TestARepeatedRequestProposesNoPauses(t *testing.T) {
	other := driver.DocumentReport{Name: limitDocument, Version: 3, Body: []byte("x")}
	proposal := driver.DocumentReport{Name: pauseDocument, Version: 9, Base: 8, Body: []byte("x")}
	known := driver.DocumentReport{Name: pauseDocument, Version: 8}
	held := pooldoc.Held{Document: driver.Document{Name: pauseDocument, Version: 8}}
	newer := pooldoc.Held{Document: driver.Document{Name: pauseDocument, Version: 9}}
	for _, c := range []struct {
		held       pooldoc.Held
		sent, want []driver.DocumentReport
	}{
		{held, []driver.DocumentReport{other, proposal}, []driver.DocumentReport{other, known}},
		{pooldoc.Held{}, []driver.DocumentReport{proposal, other}, []driver.DocumentReport{other}},
		{pooldoc.Held{}, []driver.DocumentReport{other, proposal}, []driver.DocumentReport{other}},
		{held, []driver.DocumentReport{other, known}, []driver.DocumentReport{other, known}},
		{held, []driver.DocumentReport{proposal}, []driver.DocumentReport{known}},
		{newer, []driver.DocumentReport{known}, []driver.DocumentReport{known}},
	} {
		require.Equal(t, c.want, (*pausing)(nil).withdraw(c.sent, c.held))
	}
}
