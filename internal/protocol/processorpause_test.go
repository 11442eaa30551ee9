package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// pauseDocumentOf is the document "pause" with some pauses.
func pauseDocumentOf(t *testing.T, version driver.Version, n pauseList) driver.Document {
	t.Helper()
	body, err := n.body()
	require.NoError(t, err)
	return driver.Document{Name: pauseDocument, Version: version, Body: body}
}

// tagsPaused are pauses without an end of so many tags.
func tagsPaused(n int) (list pauseList) {
	for i := range n {
		list.entries = append(list.entries, entry{tag: fmt.Sprint("t", i)})
	}
	return list
}

// A pause counts here at once, for its time or until somebody resumes, and is proposed at once unless one on record covers it.
func TestAPauseCountsAtOnce(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	for _, d := range []time.Duration{0, time.Minute} {
		p.urgency = urgencyNone
		p.Pause(time.Second, d, d.String(), "r")
		require.Equal(t, urgencyNow, p.urgency)
	}
	want := []LocalPause{{Tag: "0s", Reason: "r", End: Forever}, {Tag: "1m0s", Reason: "r", End: 61 * time.Second}}
	require.Equal(t, want, p.Pauses.inForce(time.Second))
	end, ok := p.PauseEnd(time.Second, "1m0s")
	require.Equal(t, 61*time.Second, end)
	require.True(t, ok)
	for tag, at := range map[string]time.Duration{"0s": time.Second, "another": time.Second, "1m0s": 61 * time.Second} {
		_, ok = p.PauseEnd(at, tag)
		require.False(t, ok, tag)
	}
	p.Recorded(time.Second, pauseDocumentOf(t, 7, pauseList{entries: []entry{{tag: "0s"}}}))
	p.urgency = urgencyNone
	p.Pause(time.Second, 0, "0s", "another reason")
	require.Equal(t, []LocalPause{{Tag: "0s", End: Forever}}, p.Pauses.inForce(2*time.Minute))
	require.Equal(t, urgencyNone, p.urgency)
}

// A notification stops here what it names. A receipt of another processor, and what cannot be read, change nothing.
func TestWhatANotificationChanges(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	text := func(n Notification) []byte {
		text, err := n.Encode()
		require.NoError(t, err)
		return text
	}
	require.NoError(t, p.Notify(0, text(Notification{From: "q", Version: 9, ID: "b"})))
	require.Error(t, p.Notify(0, []byte("x")))
	require.Zero(t, p.Pauses)
	list := tagsPaused(1)
	require.NoError(t, p.Notify(0, text(Notification{From: "q", Version: 7, Pauses: &list})))
	require.Equal(t, []LocalPause{{Tag: "t0", End: Forever}}, p.Pauses.inForce(0))
	require.EqualValues(t, 7, p.Notified(0, Notification{Version: 7, Pauses: &pauseList{}}))
	p.Recorded(0, pauseDocumentOf(t, 6, pauseList{}))
	require.Len(t, p.Pauses.inForce(0), 1, "the record is older")
	p.Recorded(0, pauseDocumentOf(t, 7, pauseList{}))
	require.Empty(t, p.Pauses.inForce(0), "that was recorded, and has ended since")
}

// A document that is known already changes nothing: a pause without a time of writing counts from when it was first read.
func TestARecordedPauseCountsOnce(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	doc := pauseDocumentOf(t, 7, pauseList{entries: []entry{{left: time.Minute}}})
	for _, now := range []time.Duration{time.Second, 30 * time.Second} {
		p.Recorded(now, doc)
		require.Equal(t, []LocalPause{{End: 61 * time.Second}}, p.Pauses.inForce(now))
	}
}

// A call writes what is on record with its change, and what it pushes names the version that has it.
func TestWhatACallOfPauseWrites(t *testing.T) {
	const now = time.Second
	for name, c := range map[string]struct {
		call  PauseCall
		saved int // tags by somebody else, after the call has begun
		want  []string
		fault string
	}{
		"a pause":                  {call: PauseCall{Stop: LocalPause{Tag: "x", End: Forever}}, want: []string{"t0", "x"}},
		"one that is over":         {call: PauseCall{Stop: LocalPause{Tag: "x", End: now}}, want: []string{"t0"}},
		"a resumption":             {call: PauseCall{Stop: LocalPause{Tag: "t0"}, Resume: true}},
		"one of what is not there": {call: PauseCall{Stop: LocalPause{Tag: "x"}, Resume: true}, want: []string{"t0"}},
		"the last that has room":   {call: PauseCall{Stop: LocalPause{Tag: "x", End: Forever}}, saved: 11, want: append(tagsOf(11), "x")},
		"there is no room any more": {
			call: PauseCall{Stop: LocalPause{Tag: "x", End: Forever}}, saved: 12, fault: "12 tags are paused, and the rest of the room is for operators",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
			held := driver.Version(7)
			p.Recorded(now, pauseDocumentOf(t, held, tagsPaused(1)))
			if !c.call.Resume {
				done, err := p.BeginPause(now, &c.call)
				require.NoError(t, err)
				require.False(t, done)
			}
			if c.saved > 0 {
				held = 1 << 20
				require.False(t, p.Refused(now, &c.call, pauseDocumentOf(t, held, tagsPaused(c.saved)), true))
			}
			d, news, err := p.PauseChange(now, &c.call, "me", 5)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				require.False(t, p.Pauses.has(now, c.call.Stop.Tag))
				return
			}
			require.NoError(t, err)
			next := driver.NextVersion(held, 5)
			require.Equal(t, []driver.Version{next}, c.call.Made)
			n, err := parsePauseList(d.Body)
			require.NoError(t, err)
			var tags []string
			for _, e := range n.entries {
				tags = append(tags, e.tag)
			}
			require.Equal(t, c.want, tags)
			require.Equal(t, c.call.Resume, n.resumed == next)
			require.Equal(t, driver.DocumentReport{Name: pauseDocument, Version: next, Base: held, Body: d.Body}, d)
			told, err := ParseNotification(news)
			require.NoError(t, err)
			require.Equal(t, Notification{From: "me", Version: next, Pauses: &n}, told)
		})
	}
}

func tagsOf(n int) (tags []string) {
	for i := range n {
		tags = append(tags, fmt.Sprint("t", i))
	}
	return tags
}

// A pause that is on record already is only pushed. One that has no room is refused before it counts; that of the whole pool always has room.
func TestHowACallOfPauseBegins(t *testing.T) {
	begin := func(on int, tag string) (*Processor, *PauseCall, error) {
		p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
		p.Recorded(0, pauseDocumentOf(t, 7, tagsPaused(on)))
		c := &PauseCall{Stop: LocalPause{Tag: tag, End: Forever}}
		done, err := p.BeginPause(0, c)
		require.Equal(t, err != nil, done)
		require.Equal(t, err == nil, p.Pauses.has(0, tag))
		return p, c, err
	}
	p, c, err := begin(1, "t0")
	require.NoError(t, err)
	require.Equal(t, []driver.Version{7}, c.Made)
	require.EqualValues(t, 7, c.Recorded)
	require.Empty(t, p.Pauses.wishes)
	d, news, err := p.PauseChange(0, c, "me", 5)
	require.NoError(t, err)
	require.Zero(t, d)
	n, err := ParseNotification(news)
	require.NoError(t, err)
	require.EqualValues(t, 7, n.Version)
	require.True(t, n.Pauses.pauses("t0"))

	for _, on := range []int{11, 12, 16} {
		for _, tag := range []string{"x", ""} {
			_, c, err = begin(on, tag)
			bad := (*limit.PauseError)(nil)
			require.Equal(t, on > 11 && tag != "", err != nil)
			if err != nil {
				require.ErrorAs(t, err, &bad)
			}
			require.Zero(t, c.Recorded)
		}
	}
}

// A call that the store refused is settled only if somebody else has made the same pause.
func TestWhoElseSettlesACallOfPause(t *testing.T) {
	for name, c := range map[string]struct {
		tag              string
		resume, conflict bool
		settled          bool
	}{
		"the same pause":       {"t0", false, true, true},
		"another one":          {"x", false, true, false},
		"a resumption":         {"t0", true, true, false},
		"the store has failed": {"t0", false, false, false},
	} {
		p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
		call := &PauseCall{Stop: LocalPause{Tag: c.tag, End: Forever}, Resume: c.resume}
		require.Equal(t, c.settled, p.Refused(0, call, pauseDocumentOf(t, 7, tagsPaused(1)), c.conflict), name)
		require.Equal(t, c.settled, call.Recorded == 7 && len(call.Made) == 1, name)
		require.EqualValues(t, 7, p.Pauses.Version, name)
	}
}

// Nothing is written over a document that this release cannot read.
func TestNoCallOfPauseReplacesWhatItCannotRead(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	p.Recorded(0, driver.Document{Name: pauseDocument, Version: 7, Body: []byte(`{"of":"a later release"}`)})
	c := &PauseCall{Stop: LocalPause{End: Forever}}
	d, news, err := p.PauseChange(0, c, "me", 5)
	require.ErrorContains(t, err, "what is paused cannot be read")
	require.Zero(t, d)
	require.Empty(t, news)
}
