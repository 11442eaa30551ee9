package render

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRecords(t *testing.T) {
	for _, f := range []Format{JSONArray, NDJSON} {
		got, err := f.Record([]byte(" { \"a\" :\n[1, 2] }\n"))
		require.NoError(t, err)
		require.Equal(t, `{"a":[1,2]}`, string(got)) //nolint:testifylint // byte for byte
		for _, bad := range []string{"", " ", "{", "1 2", "a", "\x00"} {
			_, err := f.Record([]byte(bad))
			require.ErrorIs(t, err, errRecordNotJSON, bad)
		}
	}
	for _, f := range []Format{Single, Raw} {
		got, err := f.Record([]byte(" a\n"))
		require.NoError(t, err)
		require.Equal(t, " a\n", string(got))
	}
}

func TestGroups(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	g := NewGroups[string, int](Bounds{Messages: 3, Bytes: 10, Age: 50 * time.Millisecond}, Layout{Format: NDJSON})
	items := func(groups []Group[string, int]) (out [][]int) {
		for _, one := range groups {
			out = append(out, one.Items)
			require.Len(t, one.Records, len(one.Items))
		}
		return out
	}
	_, ok := g.Next(at(0))
	require.False(t, ok)
	require.Empty(t, g.Add("a", 1, []byte("1234"), at(0)))
	require.Empty(t, g.Add("b", 2, []byte("1"), at(10)))
	d, ok := g.Next(at(10))
	require.True(t, ok)
	require.Equal(t, 40*time.Millisecond, d)
	require.Equal(t, [][]int{{1}}, items(g.Add("a", 3, []byte("12345"), at(20))), "5 and 6 bytes are more than 10")
	require.Equal(t, [][]int{{3}, {4}}, items(g.Add("a", 4, []byte("a very long record"), at(20))), "alone")
	require.Empty(t, g.Add("b", 5, []byte("1"), at(30)))
	require.Equal(t, [][]int{{2, 5, 6}}, items(g.Add("b", 6, []byte("1"), at(30))), "three")
	require.Empty(t, g.Add("c", 7, nil, at(30)))
	require.Empty(t, g.Add("d", 8, nil, at(40)))
	require.Empty(t, g.Due(at(79)))
	require.Equal(t, [][]int{{7}}, items(g.Due(at(80))))
	require.Empty(t, g.Add("e", 9, nil, at(80)))
	require.Equal(t, [][]int{{8}, {9}}, items(g.Rest()))
	require.Empty(t, g.Rest())

	whole := Group[string, int]{Items: []int{1, 2, 3}, Records: [][]byte{{1}, {2}, {3}}}
	a, b := whole.Halves()
	require.Equal(t, []int{1}, a.Items)
	require.Equal(t, []int{2, 3}, b.Items)
	require.Equal(t, [][]byte{{2}, {3}}, b.Records)
}

// A body has at most as many bytes as it says, and as many as fit.
func TestAGroupsBodyFits(t *testing.T) {
	for _, layout := range []Layout{
		{Format: JSONArray},
		{Format: NDJSON},
		{Format: Raw},
		{Format: Raw, Separator: ", "},
		{Format: Raw, Prefix: "<<", Suffix: ">", Separator: "--"},
		{Format: JSONArray, Prefix: `{"a":`, Suffix: "}"},
		{Format: NDJSON, Prefix: "#\n"},
	} {
		for most := 20; most < 60; most++ {
			g := NewGroups[string, int](Bounds{Messages: 100, Bytes: most}, layout)
			var done []Group[string, int]
			for i := range 100 {
				done = append(done, g.Add("", i, []byte(`{"a":1}`), time.Time{})...)
			}
			require.NotEmpty(t, done)
			for _, group := range done {
				require.LessOrEqual(t, len(layout.Join(group.Records)), most, "%v, %d", layout, most)
				require.Greater(t, len(layout.Join(append(group.Records, []byte(`{"a":1}`)))), most, "%v, %d", layout, most)
			}
		}
	}
}

func TestLayouts(t *testing.T) {
	records := [][]byte{[]byte("1"), []byte("2")}
	for want, l := range map[string]Layout{
		"12":            {Format: Raw},
		"1, 2":          {Format: Raw, Separator: ", "},
		"<1|2>":         {Format: Raw, Prefix: "<", Suffix: ">", Separator: "|"},
		`{"all":[1,2]}`: {Format: JSONArray, Prefix: `{"all":`, Suffix: "}"},
		"head\n1\n2\n":  {Format: NDJSON, Prefix: "head\n"},
	} {
		require.Equal(t, want, string(l.Join(records)))
		require.Equal(t, "1", string(records[0]), "records are another's")
	}
	require.Equal(t, "<1>", string(Layout{Format: Single, Prefix: "<", Suffix: ">", Separator: "|"}.Join(records[:1])))
}
