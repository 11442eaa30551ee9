package limit

import (
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata" // the same zones on every machine

	"github.com/stretchr/testify/require"
)

func TestWindow(t *testing.T) {
	for _, test := range []struct {
		name            string
		per             Period
		zone            string
		now, start, end string
	}{
		{"hour", PeriodHour, "", "2026-07-03T10:59:59.999Z", "2026-07-03T10:00:00Z", "2026-07-03T11:00:00Z"},
		{"hour of a zone of half hours", PeriodHour, "Asia/Kolkata", "2026-07-03T10:29:59Z", "2026-07-03T09:30:00Z", "2026-07-03T10:30:00Z"},
		{"day", PeriodDay, "", "2026-07-03T00:00:00Z", "2026-07-03T00:00:00Z", "2026-07-04T00:00:00Z"},
		{"day of a zone", PeriodDay, "Europe/Berlin", "2026-07-03T22:00:00Z", "2026-07-03T22:00:00Z", "2026-07-04T22:00:00Z"},
		{"day of the far east", PeriodDay, "Pacific/Auckland", "2026-07-03T12:00:00Z", "2026-07-03T12:00:00Z", "2026-07-04T12:00:00Z"},
		{"23 hours", PeriodDay, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"25 hours", PeriodDay, "Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"no midnight", PeriodDay, "America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"before it", PeriodDay, "America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z"},
		{"two midnights", PeriodDay, "America/Havana", "2026-11-01T05:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"back over midnight", PeriodDay, "America/St_Johns", "2010-11-07T03:00:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"},
		{"a day that is left out", PeriodDay, "Pacific/Apia", "2011-12-30T09:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"month", PeriodMonth, "", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"month of a zone", PeriodMonth, "America/New_York", "2026-03-31T12:00:00Z", "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z"},
		{"the end of the longer month", PeriodMonth, "", "2024-01-31T00:00:00Z", "2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"},
		{"unknown zone", PeriodDay, "Mars/Olympus", "2026-07-03T01:00:00Z", "2026-07-03T00:00:00Z", "2026-07-04T00:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339Nano, test.now)
			require.NoError(t, err)
			start, end := Budget{Per: test.per, Zone: test.zone}.Window(now)
			require.Equal(t, test.start, start.UTC().Format(time.RFC3339Nano))
			require.Equal(t, test.end, end.UTC().Format(time.RFC3339Nano))
		})
	}
}

// Windows follow each other without a gap and without a common moment, in every zone, also where clocks are changed.
func TestWindowsTile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, zone := range []string{
		"UTC", "Europe/Berlin", "America/Sao_Paulo", "America/Havana", "America/St_Johns",
		"Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca",
	} {
		for _, per := range []Period{PeriodHour, PeriodDay, PeriodMonth} {
			b := Budget{Per: per, Zone: zone}
			for range 300 {
				now := time.Unix(random.Int64N(1<<31), 0)
				if _, change := now.In(mustZone(t, zone)).ZoneBounds(); !change.IsZero() && random.IntN(2) == 0 {
					now = change.Add(time.Duration(random.IntN(7200)-3600) * time.Second)
				}
				start, end := b.Window(now)
				require.False(t, start.After(now), "%s %s %s", zone, per, now.UTC())
				require.True(t, end.After(now), "%s %s %s", zone, per, now.UTC())
				first, last := b.Window(start)
				require.True(t, first.Equal(start) && last.Equal(end), "%s %s %s", zone, per, now.UTC())
				first, last = b.Window(end.Add(-1))
				require.True(t, first.Equal(start) && last.Equal(end), "%s %s %s", zone, per, now.UTC())
				next, _ := b.Window(end)
				require.True(t, next.Equal(end), "%s %s %s", zone, per, now.UTC())
			}
		}
	}
}

func mustZone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}
