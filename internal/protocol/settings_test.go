package protocol

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func rowsOf(notes ...string) (rows []driver.RosterRow) {
	for i, n := range notes {
		rows = append(rows, driver.RosterRow{ID: string(rune('a' + i)), Note: n})
	}
	return rows
}

func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		notes            []string
		want, overridden string
	}{
		"nobody":            {nil, "", ""},
		"the same":          {[]string{"1 0 600 60000000 0 0", "1 0 600 60000000 7 8 u:3 w:1"}, "", ""},
		"one tells nothing": {[]string{"1 0 600 60000000 0 0", "", "2 of a later version"}, "", ""},
		"the lowest counts": {
			[]string{"1 0 900 60000000 0 0", "1 0 10 1000000 0 0", "1 0 900 60000000 0 0"},
			"10 per 1s (b) counts; 900 per 1m (a, c)", "10 per 1s (b); 900 per 1m (a, c)",
		},
		"equal rates": {
			[]string{"1 0 600 60000000 0 0", "1 0 10 1000000 0 0"},
			"10 per 1s (b) counts; 600 per 1m (a) counts", "10 per 1s (b); 600 per 1m (a)",
		},
		"hard or not": {
			[]string{"1 1 600 60000000 0 0", "1 0 600 60000000 0 0"},
			"600 per 1m (b) counts; 600 per 1m, hard (a) counts", "600 per 1m (b); 600 per 1m, hard (a) caps the override for these",
		},
		"calls in flight": {
			[]string{"1 n:30", "1 n:20 w:4", "1 n:30 p:7"},
			"20 calls in flight (b) counts for their part; 30 calls in flight (a, c) counts for their part",
			"20 calls in flight (b) counts for their part; 30 calls in flight (a, c) counts for their part",
		},
		"rates and slots": {
			[]string{"1 n:30", "1 0 600 60000000 0 0"},
			"600 per 1m (b) counts; 30 calls in flight (a) counts for their part", "600 per 1m (b); 30 calls in flight (a) counts for their part",
		},
	} {
		settings := Settings(rowsOf(c.notes...))
		require.Equal(t, c.want, Disagreement(settings, false), name)
		require.Equal(t, c.overridden, Disagreement(settings, true), name)
	}
	const three = "1 0 5 1000000 0 0"
	require.Equal(t, "5 per 1s (a, b, c) counts; 6 per 1s (d)", Disagreement(Settings(rowsOf(three, three, three, "1 0 6 1000000 0 0")), false))
	require.False(t, Settings(rowsOf("1 n:30"))[0].Counts, "slots do not count for the pool")
	many := rowsOf("1 0 5 1000000 0 0", "1 0 5 1000000 0 0", "1 0 5 1000000 0 0", "1 0 5 1000000 0 0", "1 0 5 1000000 0 0", "1 0 6 1000000 0 0")
	many[5].ID = "f\x1b[2J"
	require.Equal(t, `5 per 1s (a, b, c, 2 more) counts; 6 per 1s ("f\x1b[2J")`, Disagreement(Settings(many), false))
}

// Quotas that differ are named, with what that means. What a limit counts for is said only if limits differ as well.
func TestSettingsWithQuotas(t *testing.T) {
	one, other := packBusy(1, 0xbeef, 0, nil), packBusy(7, 0xffffffff, 9, []busyTag{{key: 1, rate: 3}})
	const same, fast = "1 0 600 60000000 0 0", "1 0 900 60000000 0 0"
	for name, c := range map[string]struct {
		notes, busy []string
		want        string
	}{
		"the same":     {[]string{same, same}, []string{one, packBusy(9, 0xbeef, 5, nil)}, ""},
		"limits alone": {[]string{same, fast}, []string{one, one}, "600 per 1m (a) counts; 900 per 1m (b)"},
		"quotas alone": {
			[]string{same, same, same},
			[]string{other, one, one},
			"600 per 1m, quotas 0000beef (b, c); 600 per 1m, quotas ffffffff (a); each goes by its own quotas",
		},
		"none at one": {
			[]string{same, same},
			[]string{one, ""},
			"600 per 1m, no quotas (b); 600 per 1m, quotas 0000beef (a); each goes by its own quotas",
		},
		"limits as well": {
			[]string{fast, same},
			[]string{one, other},
			"600 per 1m, quotas ffffffff (b) counts; 900 per 1m, quotas 0000beef (a); each goes by its own quotas",
		},
		"calls in flight": {[]string{"1 n:30", "1 n:30"}, []string{"", ""}, ""},
		"nonsense":        {[]string{same, same}, []string{"", "x" + one[1:]}, ""},
	} {
		rows := rowsOf(c.notes...)
		for i := range rows {
			rows[i].Busy = c.busy[i]
		}
		require.Equal(t, c.want, Disagreement(Settings(rows), false), name)
	}
	rows := rowsOf(same)
	rows[0].Busy = other
	require.Equal(t, "ffffffff", Settings(rows)[0].Quotas)
}

// Every change is logged once, and so is the end of it.
func TestSettingsAreLogged(t *testing.T) {
	var b Logbook
	now := time.Now()
	logged := func(settings string) []LogLine {
		return b.Observe(now, &Situation{state: StateHolding, share: driver.Whole, settings: settings})
	}
	require.Empty(t, logged(""))
	lines := logged("5 (a) counts; 6 (b)")
	require.Len(t, lines, 1)
	require.Equal(t, slog.LevelWarn, lines[0].Level)
	require.Equal(t, []any{"settings", "5 (a) counts; 6 (b)"}, lines[0].Args)
	require.Empty(t, logged("5 (a) counts; 6 (b)"))
	require.Len(t, logged("5 (a) counts; 7 (b)"), 1, "it has changed")
	lines = logged("")
	require.Len(t, lines, 1)
	require.Equal(t, slog.LevelInfo, lines[0].Level)
	require.Empty(t, logged(""))
}

// What the log needs at each sync of a pool of 500, and what it would be with all notes read once more.
func BenchmarkSettings(b *testing.B) {
	roster, notes := make([]driver.RosterRow, 500), make([]Note, 500)
	for i := range roster {
		roster[i] = driver.RosterRow{ID: string(rune(i + 256)), Note: "1 0 600 60000000 7 8 p:12 w:3 u:500 why:limit", Busy: packBusy(1, 0xbeef, 0, nil)}
		notes[i] = NoteIn(roster[i].Note)
	}
	b.Run("read already", func(b *testing.B) {
		for b.Loop() {
			settingsOf(roster, notes)
		}
	})
	b.Run("read again", func(b *testing.B) {
		for b.Loop() {
			Settings(roster)
		}
	})
}

// What an answer's notes were read for serves the log as well: all tell the same as the roster itself, this processor too.
func TestSettingsOfTheLastAnswer(t *testing.T) {
	roster := rowsOf("1 1 600 60000000 0 0", "1 0 600 60000000 0 0", "", "1 n:30", "2 of a later version", "1 0 600 60000000 7 8 n:4")
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	require.Empty(t, p.settings(), "nothing was read")
	req := p.Request(0, 1, Observation{Demand: driver.Whole})
	grant := driver.Grant{Live: len(roster), PoolSize: len(roster), Roster: roster}
	require.NoError(t, p.Take(0, driver.Answer{Seq: req.Seq, Nonce: req.Nonce, Lease: driver.DefaultLease, Revision: 1, Grant: grant}, ""))
	require.Equal(t, 2, p.ceiling.law.Others)
	require.Len(t, Settings(roster), 3)
	require.Equal(t, Settings(roster), p.settings())
}
