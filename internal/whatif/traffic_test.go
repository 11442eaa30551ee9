package whatif

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadTraffic(t *testing.T) {
	tr, err := ReadTraffic(strings.NewReader("\ufefftime,rate,tag,cost\n" +
		"2026-11-29T08:00:00Z,2,b,\n" +
		"2026-11-29T09:00:00+01:00,1.5,a,800\n" +
		"2026-11-29T08:01:00Z,0,a,0\n" +
		"2026-11-29T08:03:00Z,3,a,2.5\n"))
	require.NoError(t, err)
	require.Equal(t, &Traffic{
		Start: time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC), Minutes: 4,
		Tags: []TagTraffic{
			{Name: "a", Minutes: []Minute{{0, 1.5, 800}, {3, 3, 2.5}}},
			{Name: "b", Minutes: []Minute{{0, 2, 1}}},
		},
	}, tr)
	tr, err = ReadTraffic(strings.NewReader("rate,time\n7,2026-11-29T08:00:07+02:00\n"))
	require.NoError(t, err)
	require.Equal(t, []TagTraffic{{Minutes: []Minute{{0, 7, 1}}}}, tr.Tags)
}

func TestBadTraffic(t *testing.T) {
	const head, first = "time,tag,rate,cost\n", "2026-11-29T08:00:00Z,a,1,1\n"
	for in, want := range map[string]string{
		"":                         "traffic: the recording is empty, allowed: a line with the names of the columns, then a line for each minute and tag",
		head:                       "traffic: no line has a call, allowed: at least one line with a rate above 0",
		"time,rate,tenant\n":       `traffic: line 1, column 3 is "tenant", allowed: ` + columnsAllowed,
		"time,rate,rate\n":         `traffic: line 1, column 3 is "rate", as another one is, allowed: ` + columnsAllowed,
		"time,tag\n":               "traffic: line 1, the column rate is missing, allowed: " + columnsAllowed,
		head + "yesterday,a,1,1\n": `traffic: line 2, time is "yesterday", allowed: a time as in RFC 3339, such as 2026-11-29T08:00:00Z`,
		head + first + "2026-11-29T07:59:00Z,a,1,1\n": `traffic: line 3, time is "2026-11-29T07:59:00Z", before the line above, ` +
			`allowed: lines in the order of their minutes, 2026-11-29T08:00:00Z or later`,
		head + first + "2026-11-29T08:00:30Z,a,1,1\n": `traffic: line 3, time is "2026-11-29T08:00:30Z", ` +
			`allowed: whole minutes after the first line, 2026-11-29T08:00:00Z`,
		head + first + "2027-11-29T08:00:00Z,a,1,1\n": `traffic: line 3, time is "2027-11-29T08:00:00Z", ` +
			`allowed: at most 31 days after the first line, 2026-11-29T08:00:00Z`,
		head + first + first:                      `traffic: line 3, tag is "a", for the second time in this minute, allowed: one line for each minute and tag`,
		head + "2026-11-29T08:00:00Z,a,-1,1\n":    `traffic: line 2, rate is "-1", allowed: a number from 0 to 1e+09`,
		head + "2026-11-29T08:00:00Z,a,NaN,1\n":   `traffic: line 2, rate is "NaN", allowed: a number from 0 to 1e+09`,
		head + "2026-11-29T08:00:00Z,a,+Inf,1\n":  `traffic: line 2, rate is "+Inf", allowed: a number from 0 to 1e+09`,
		head + "2026-11-29T08:00:00Z,a,,1\n":      `traffic: line 2, rate is "", allowed: a number from 0 to 1e+09`,
		head + "2026-11-29T08:00:00Z,a,1,many\n":  `traffic: line 2, cost is "many", allowed: a number from 0 to 1e+09`,
		head + "2026-11-29T08:00:00Z,a,1,0\n":     `traffic: line 2, cost is "0", allowed: a number above 0, to 1e9, or nothing for 1`,
		head + "2026-11-29T08:00:00Z,a\x01,1,1\n": `traffic: line 2, tag is "a\x01", allowed: 1 to 64 bytes of UTF-8 without control characters, or nothing`,
		head + "2026-11-29T08:00:00Z,a,1\n":       `traffic: line 2, it has 3 fields, allowed: 4 fields, as in line 1`,
		head + "2026-11-29T08:00:00Z,\"a,1\n":     `traffic: line 2, extraneous or missing " in quoted-field, allowed: CSV (RFC 4180)`,
	} {
		_, err := ReadTraffic(strings.NewReader(in))
		require.EqualError(t, err, want, "%q", in)
	}
	var many strings.Builder
	many.WriteString(head)
	for i := range MaxTags + 1 {
		many.WriteString("2026-11-29T08:00:00Z,t" + strings.Repeat("x", i%50) + string(rune('a'+i/50)) + ",1,1\n")
	}
	_, err := ReadTraffic(strings.NewReader(many.String()))
	require.ErrorContains(t, err, "line 1002, tag is")
	require.ErrorContains(t, err, "allowed: at most 1000 different tags")
}

func FuzzReadTraffic(f *testing.F) {
	f.Add("time,tag,rate,cost\n2026-11-29T08:00:00Z,a,1,1\n")
	f.Fuzz(func(t *testing.T, in string) {
		tr, err := ReadTraffic(strings.NewReader(in))
		if err == nil {
			require.Positive(t, tr.calls())
			require.LessOrEqual(t, tr.Minutes, MaxMinutes)
		}
	})
}
