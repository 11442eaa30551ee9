package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// The bounds of an override are in range.
func TestTheBoundsOfAnOverride(t *testing.T) {
	const longest = 31 * 24 * time.Hour
	for _, c := range []struct {
		o  Override
		ok bool
	}{
		{Override{Max: maxNoteTokens, Per: time.Second}, true},
		{Override{Max: maxNoteTokens + 1, Per: time.Minute}, false},
		{Override{Max: -1}, false},
		{Override{Max: 1, Per: longest}, true},
		{Override{Max: 1, Per: longest + time.Microsecond}, false},
		{Override{Max: 1, Per: time.Millisecond}, true},
		{Override{Max: 1, Per: time.Millisecond - time.Microsecond}, false},
		{Override{Max: 1, Per: time.Millisecond + 1}, false},
		{Override{Max: 1_000_000, Per: time.Millisecond}, true},
		{Override{Max: 1_000_001, Per: time.Millisecond}, false},
	} {
		require.Equal(t, c.ok, c.o.Validate() == nil, c)
	}
	now := time.Unix(1000, 0)
	for left, ok := range map[time.Duration]bool{0: false, 1: true, bounds.MaxPause: true, bounds.MaxPause + 1: false} {
		got, err := timeLeft("", now.Add(left), now)
		require.Equal(t, ok, err == nil, left)
		if ok {
			require.Equal(t, max(left, time.Microsecond), got)
		}
	}
	for body, ok := range map[string]bool{
		`{"max":5,"at_us":1,"left_us":1}`: true, `{"max":5,"at_us":1}`: false, `{"max":5,"until":"2026-11-22T15:04:05Z"}`: false,
		`{"max":5,"per":"0s"}`: false, `{"max":5,"per":"x"}`: false,
	} {
		_, err := parseOverride([]byte(body))
		require.Equal(t, ok, err == nil, body)
	}
}

// An override is for a limit of tokens. Without a period it has that of the lowest one.
func TestWhatAnOverrideFits(t *testing.T) {
	const rate, slots, none = "1 0 600 60000000 0 0", "1 n:30", ""
	o := Override{Max: 5, Per: time.Second}
	require.NoError(t, o.fits(nil), "nobody is there")
	require.NoError(t, o.fits(rowsOf(slots, rate)))
	require.ErrorContains(t, o.fits(rowsOf(slots, none)), "calls in flight")
	require.ErrorContains(t, o.fits(rowsOf(none)), "no live pod has reported")
	require.NoError(t, (Override{}).fits(rowsOf(none)))
	most := Override{Max: int(600 * ceiling.MaxRaise), Per: time.Minute}
	require.NoError(t, most.fits(rowsOf(rate)))
	most.Max++
	require.ErrorContains(t, most.fits(rowsOf(rate)), "64 times")
	require.Equal(t, time.Minute, configured(rowsOf(none, "1 0 900 1000000 0 0", rate, slots)))
}

// Clearing an override also replaces a ramp and a backoff that this release cannot read, and no others.
func TestClearOverrideRenewsWhatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ ramp, backoff bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		s := &recordStore{p: newTagPool(t, 100, acme(0, 0), 1)}
		s.p.run(time.Second)
		for name, strange := range map[string]bool{rampDocument: c.ramp, backoffDocument: c.backoff} {
			if strange {
				_, _, err := s.p.record.Save(&driver.DocumentReport{Name: name, Version: 1 << 16, Body: []byte("?")}, s.at())
				require.NoError(t, err)
			}
		}
		require.NoError(t, ClearOverride(t.Context(), s, "pool"))
		for name, strange := range map[string]bool{rampDocument: c.ramp, backoffDocument: c.backoff} {
			doc := recorded(&s.p.record, name)
			require.Equal(t, strange, doc.Version > 0, name)
			require.NotEqual(t, "?", string(doc.Body), name)
		}
	}
}
