package protocol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

func TestNotice(t *testing.T) {
	until := time.Date(2026, 11, 22, 15, 4, 5, 0, time.UTC)
	n := pauseList{resumed: 7, entries: []entry{
		{reason: `429 from "the" service <a>`, at: 1_700_000_000_000_000, left: time.Minute, until: until},
		{tag: "gpt-4", at: 12, left: 0},
		{tag: "x", left: time.Microsecond},
	}}
	body, err := n.body()
	require.NoError(t, err)
	//nolint:testifylint // the bytes count: what is saved is compared byte by byte
	require.Equal(t, `{"pauses":[{"at_us":1700000000000000,"left_us":60000000,"until":"2026-11-22T15:04:05Z","reason":"429 from \"the\" service <a>"},`+
		`{"tag":"gpt-4","at_us":12},{"tag":"x","left_us":1}],"resumed":7}`, string(body))
	back, err := parsePauseList(body)
	require.NoError(t, err)
	require.Equal(t, n, back)
	for _, body := range []string{
		"", "x", "[]", "{}", `{"pauses":null}`, `{"pauses":[]}x`, `{"pauses":[],"more":1}`, `{"pauses":[{"more":1}]}`,
		`{"pauses":[{},{}]}`, `{"pauses":[{"tag":"a"},{"tag":"a"}]}`, `{"pauses":[{"left_us":-1}]}`, `{"pauses":[{"at_us":-1}]}`,
		fmt.Sprintf(`{"pauses":[{"left_us":%d}]}`, bounds.MaxPause.Microseconds()+1), `{"pauses":[{"until":"yesterday"}]}`,
		`{"pauses":[{"tag":"` + strings.Repeat("x", 65) + `"}]}`, `{"pauses":[{"reason":"a\nb"}]}`, `{"pauses":[],"resumed":9223372036854775808}`,
		`{"pauses":[` + strings.Repeat(`{},`, bounds.MaxPausedTags) + `{}]}`, strings.Repeat(" ", wire.MaxDocumentBytes+1),
	} {
		_, err := parsePauseList([]byte(body))
		require.Error(t, err, "%.60s", body)
		require.LessOrEqual(t, len(err.Error()), 400)
	}
	_, err = parsePauseList([]byte(`{"pauses":[{"until":"yesterday"}]}`))
	require.ErrorContains(t, err, `until is "yesterday", allowed: a time as of RFC 3339`)
}

func TestNullChangesNoQuota(t *testing.T) {
	c, err := parseQuotaChanges([]byte(`{"tags":{"acme":null},"other":null}`))
	require.NoError(t, err)
	q := limit.Quotas{Tags: map[string]limit.Quota{"acme": {Total: 400}}, Other: limit.Quota{Total: 50}}
	require.Equal(t, q, c.Over(q))
}

// The longest texts for as many tags as there may be do not fit; that is an error, and no more.
func TestNoticeIsBounded(t *testing.T) {
	var n pauseList
	for i := range bounds.MaxPausedTags {
		n.entries = append(n.entries, entry{
			tag: fmt.Sprint(i), reason: strings.Repeat("r", 100), at: wire.MaxMicros, left: bounds.MaxPause, until: time.Now(),
		})
	}
	body, err := n.body()
	require.NoError(t, err)
	require.LessOrEqual(t, len(body), wire.MaxDocumentBytes)
	for i := range n.entries {
		n.entries[i].reason = strings.Repeat(`"`, 128)
	}
	_, err = n.body()
	require.ErrorContains(t, err, "at most 16 tags")
	n.entries = append(n.entries[:0:0], make([]entry, bounds.MaxPausedTags+1)...)
	_, err = n.body()
	require.ErrorContains(t, err, "number of the pause is 17")
	news := Notification{From: "x", Version: 1, Pauses: &pauseList{}}
	text, err := news.Encode()
	require.NoError(t, err)
	require.Less(t, len(text)+wire.MaxDocumentBytes, wire.MaxNewsBytes)
}

// Pauses of tags leave room for others: those of pods for operators, and all of them for the pause of the whole pool.
func TestRoomForPauses(t *testing.T) {
	for name, reason := range map[string]string{"many": "", "large": strings.Repeat("r", 128), "larger": strings.Repeat(`"`, 128)} {
		t.Run(name, func(t *testing.T) {
			var n pauseList
			fill := func(by string, spare int) (added int) {
				for {
					next, ok := n.with(entry{
						tag: by + strings.Repeat("t", 50) + fmt.Sprint(added), at: wire.MaxMicros, left: bounds.MaxPause, until: time.Now(),
						reason: reason, by: by,
					}, spare)
					if !ok {
						return added
					}
					n, added = next, added+1
				}
			}
			require.Positive(t, fill("pod", placesOfOperators))
			require.Positive(t, fill("ann", placesOfPool))
			tags := len(n.entries)
			pool := entry{at: wire.MaxMicros, left: bounds.MaxPause, until: time.Now(), reason: strings.Repeat(`"`, 128), by: strings.Repeat(`"`, 64)}
			next, ok := n.with(pool, 0)
			require.True(t, ok)
			require.Len(t, next.entries, tags+1, "nothing gave way")
			_, err := next.body()
			require.NoError(t, err)
			_, ok = next.with(n.entries[0], placesOfOperators)
			require.True(t, ok, "one that has its place keeps it")
		})
	}
	// Earlier releases also gave the last place to a tag.
	var n pauseList
	for i := range bounds.MaxPausedTags {
		n.entries = append(n.entries, entry{tag: fmt.Sprint(i), at: 1, left: time.Duration(100-i) * time.Second})
	}
	next, ok := n.with(entry{}, 0)
	require.True(t, ok)
	require.Len(t, next.entries, bounds.MaxPausedTags)
	require.False(t, next.pauses("15"), "it would have ended first")
}

func FuzzParsePauseList(f *testing.F) {
	f.Add(`{"pauses":[{"tag":"gpt","at_us":1,"left_us":60000000,"until":"2026-11-22T15:04:05Z","reason":"429"}],"resumed":7}`)
	f.Add(`{"pauses":[]}`)
	f.Add(`{"pauses":[{"left_us":31622400000000}]}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, body string) {
		n, err := parsePauseList([]byte(body))
		if err != nil {
			require.Zero(t, n)
			return
		}
		again, err := n.body()
		if err != nil {
			return // escapes make it larger
		}
		back, err := parsePauseList(again)
		require.NoError(t, err)
		require.Len(t, back.entries, len(n.entries))
		for _, m := range []moment{
			{},
			{now: time.Hour, logical: 1, clamp: time.Second},
			{now: time.Hour, logical: wire.MaxMicros, began: wire.MaxMicros, slept: maxSlept, clamp: time.Second},
		} {
			for i := range n.entries {
				e := n.entries[i]
				require.Equal(t, e.left, back.entries[i].left)
				end := e.ends(m)
				require.GreaterOrEqual(t, end, m.now)
				require.True(t, end == Forever || end <= m.now+bounds.MaxPause)
			}
		}
	})
}

func FuzzParseNotification(f *testing.F) {
	f.Add(`{"form":1,"from":"a","version":65537,"pause":{"pauses":[{"left_us":1}]}}`)
	f.Add(`{"form":1,"from":"a","version":65537,"receipt":"cG9kLTE="}`)
	f.Add(`{"form":1,"from":"a","version":0}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseNotification([]byte(text))
		if err != nil {
			return
		}
		require.NotZero(t, n.Version)
		require.NotEqual(t, n.Pauses == nil, n.ID == "")
		again, err := n.Encode()
		if err != nil {
			return // escapes make it larger
		}
		back, err := ParseNotification(again)
		require.NoError(t, err, "%s", again)
		require.Equal(t, n.Version, back.Version)
		require.Equal(t, n.ID, back.ID)
	})
}

// written must not be early: the end that is read is never before the one that was meant, but for
// what the clocks are off.
func TestPauseIsReadAsItWasWritten(t *testing.T) {
	const clamp = 2500 * time.Millisecond
	at := moment{now: time.Hour, logical: 1_700_000_000_000_000, clamp: clamp}
	s := LocalPause{Tag: "a", End: at.now + time.Minute}
	e := s.entry(at)
	require.Equal(t, entry{tag: "a", at: at.logical, left: time.Minute}, e)
	for name, c := range map[string]struct {
		m    moment
		left time.Duration
	}{
		"at once":                      {moment{logical: at.logical}, time.Minute},
		"half a minute later":          {moment{logical: at.logical + 30_000_000}, 30 * time.Second},
		"when it is over":              {moment{logical: at.logical + 90_000_000}, 0},
		"before it was written":        {moment{logical: at.logical - 90_000_000}, time.Minute},
		"without a clock":              {moment{}, time.Minute},
		"after a sleep":                {moment{logical: at.logical + 2, began: at.logical + 1, slept: 40 * time.Second}, 20*time.Second - 2*time.Microsecond},
		"after a sleep that counted":   {moment{logical: at.logical + 2, began: at.logical + 1, slept: 2 * time.Second}, time.Minute - 2*time.Microsecond},
		"after a sleep of a clamp":     {moment{logical: at.logical + 2, began: at.logical + 1, slept: clamp}, time.Minute - 2*time.Microsecond},
		"written as the sleep ended":   {moment{logical: at.logical + 2, began: at.logical, slept: 40 * time.Second}, time.Minute - 2*time.Microsecond},
		"written after the sleep":      {moment{logical: at.logical + 2, began: at.logical - 1, slept: 40 * time.Second}, time.Minute - 2*time.Microsecond},
		"after the longest sleep ever": {moment{logical: at.logical + 2, began: at.logical + 1, slept: maxSlept}, 0},
	} {
		c.m.now, c.m.clamp = 5*time.Second, clamp
		require.Equal(t, c.m.now+c.left, e.ends(c.m), name)
	}
	forever := LocalPause{End: Forever}
	require.Equal(t, forever.End, new(entry).ends(at))
	fe := forever.entry(at)
	require.Equal(t, forever.End, fe.ends(at))
	unknown := entry{left: time.Minute} // when it was written
	asleep := moment{now: time.Hour, logical: 9, began: 8, slept: 40 * time.Second, clamp: clamp}
	require.Equal(t, time.Hour+time.Minute, unknown.ends(asleep))
	require.False(t, unknown.sleptThrough(asleep))
	short := LocalPause{End: at.now + 1}
	e = short.entry(at)
	require.Equal(t, at.now+time.Microsecond, e.ends(at), "never for ever")
}

// A tag stands once, with the later end; at the same end the first reason stays. A limiter has no end of a pause that has none.
func TestTheLaterPauseCounts(t *testing.T) {
	var list []LocalPause
	for _, s := range []LocalPause{
		{Tag: "a", Reason: "1", End: 5}, {Tag: "b", Reason: "2", End: 4}, {Tag: "a", Reason: "3", End: 5}, {Tag: "b", Reason: "4", End: Forever},
	} {
		list = later(list, s)
	}
	base := time.Unix(1, 0)
	require.Equal(t, []limit.Paused{{Tag: "a", Reason: "1", Until: base.Add(5)}, {Tag: "b", Reason: "4"}}, paused(list, base))
}

// pausesOf is a list of so many pauses whose text has so many bytes.
func pausesOf(t *testing.T, tags, bytes int) (n pauseList) {
	t.Helper()
	for i := range tags {
		n.entries = append(n.entries, entry{tag: strings.Repeat(string(rune('a'+i)), 50), reason: "r", by: strings.Repeat("b", 60)})
	}
	text, err := n.text()
	require.NoError(t, err)
	more := bytes - len(text)
	for i := range n.entries {
		fits := min(more, 127)
		n.entries[i].reason += strings.Repeat("r", fits)
		more -= fits
	}
	text, err = n.text()
	require.NoError(t, err)
	require.Equal(t, bytes, len(text)) //nolint:testifylint // the text would be in the message
	return n
}

// The bounds of the document are in range, in what is written and in what is read.
func TestTheBoundsOfPauses(t *testing.T) {
	const most = bounds.MaxPausedTags
	for bytes, ok := range map[int]bool{wire.MaxDocumentBytes: true, wire.MaxDocumentBytes + 1: false} {
		list := pausesOf(t, most, bytes)
		_, err := list.body()
		require.Equal(t, ok, err == nil, bytes)
		none := `{"pauses":[]}`
		_, err = parsePauseList([]byte(none + strings.Repeat(" ", bytes-len(none))))
		require.Equal(t, ok, err == nil, bytes)
	}
	full := pausesOf(t, most, 3000)
	full.resumed = wire.MaxVersion
	full.entries[0].at, full.entries[0].left = wire.MaxMicros, bounds.MaxPause
	body, err := full.body()
	require.NoError(t, err)
	back, err := parsePauseList(body)
	require.NoError(t, err)
	require.Equal(t, full, back)
	more := pausesOf(t, most+1, 3000)
	_, err = more.body()
	require.Error(t, err)
}

// One more tag is paused while enough places, and bytes for them, stay free.
func TestRoomForOneMorePause(t *testing.T) {
	const spare = placesOfOperators
	one := entry{tag: "z"}
	for tags, ok := range map[int]bool{bounds.MaxPausedTags - spare - 1: true, bounds.MaxPausedTags - spare: false} {
		list := pausesOf(t, tags, 2000)
		_, fits := list.with(one, spare)
		require.Equal(t, ok, fits, tags)
	}
	list := pausesOf(t, 9, 1500)
	with, _ := list.with(one, spare)
	text, err := with.text()
	require.NoError(t, err)
	place := len(text) - 1500
	for bytes, ok := range map[int]bool{0: true, 1: false} {
		list := pausesOf(t, 9, wire.MaxDocumentBytes-spare*placeBytes-place+bytes)
		_, fits := list.with(one, spare)
		require.Equal(t, ok, fits, bytes)
	}
	full := pauseList{entries: []entry{{tag: ""}, {tag: "a"}, {tag: "b"}}}
	require.ErrorContains(t, full.full("c", "that is all"), ": 2 tags are paused, and that is all")
}

// The pause of a tag that ends first gives way, of equal ones the first, and one without an end only if all are.
func TestThePauseThatEndsFirst(t *testing.T) {
	const us = time.Microsecond
	for want, list := range map[string][]entry{
		"b": {{tag: "", left: us}, {tag: "c"}, {tag: "a", at: 100, left: 10 * us}, {tag: "b", at: 50, left: 55 * us}, {tag: "d", at: 50, left: 55 * us}},
		"c": {{tag: ""}, {tag: "c"}, {tag: "e"}},
		"":  {{tag: "", left: us}},
	} {
		n := pauseList{entries: list}
		require.Equal(t, want, n.firstToEnd())
	}
}
