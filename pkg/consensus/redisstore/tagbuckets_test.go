package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// goodTagBuckets are the hash of a pool and that of its tag buckets, as far as parseTagBuckets looks at them.
func goodTagBuckets() (fields, values map[string]string) {
	version := "\x7f\xff\xff\xff\xff\xff\xff\xff"
	return map[string]string{metaField: "1 s 5 100 200 0 0 - 9000 1 0 100 0 0 0", tagBucketsField: "1"}, map[string]string{
		"\xff\x00\x00\x00\x00\x00\x00\x01": strings.Repeat("\x00", 8) + string(appendNumbers(nil, 7, 9)),
		"\x00\x00\x00\x00\x00\x00\x00\x02": version + string(appendNumbers(nil, 5, 5, 10, 20, 3, 11, 30, 4_000_000_000_000_000)),
	}
}

func TestParseTagBuckets(t *testing.T) {
	fields, values := goodTagBuckets()
	tagBuckets, err := parseTagBuckets(fields, values, nil)
	require.NoError(t, err)
	require.Equal(t, []driver.TagBucket{
		{Key: 2, Version: wire.MaxVersion, Paid: 5, Full: 5, Spent: []driver.Spent{
			{Start: 10, End: 20, Tokens: 3}, {Start: 11, End: 30, Tokens: 4_000_000_000_000_000},
		}},
		{Key: 0xff00000000000001, Paid: 7, Full: 9},
	}, tagBuckets)
	delete(fields, tagBucketsField)
	tagBuckets, err = parseTagBuckets(fields, values, nil)
	require.NoError(t, err)
	require.Empty(t, tagBuckets, "they are of a pool that has ended")
	_, err = parseTagBuckets(nil, values, nil)
	require.ErrorIs(t, err, driver.ErrNoPool)

	value := func(numbers ...int64) string {
		return strings.Repeat("\x00", 8) + string(appendNumbers(nil, numbers...))
	}
	for name, spoil := range map[string]func(fields, values map[string]string){
		"another hash":        func(fields, _ map[string]string) { delete(fields, metaField) },
		"a newer format":      func(fields, _ map[string]string) { fields[metaField] = "2 something else" },
		"a short key":         func(_, values map[string]string) { values["1234567"] = value(7, 9) },
		"a version cut":       func(_, values map[string]string) { values["12345678"] = "1234567" },
		"a value cut":         func(_, values map[string]string) { values["12345678"] = value(7) },
		"a window cut":        func(_, values map[string]string) { values["12345678"] = value(7, 9, 1, 2) },
		"a fraction":          func(_, values map[string]string) { values["12345678"] = value(7) + "\x00\x00\x00\x00\x00\x00\xe0\x3f" },
		"no number":           func(_, values map[string]string) { values["12345678"] = value(7) + strings.Repeat("\xff", 8) },
		"full before paid":    func(_, values map[string]string) { values["12345678"] = value(9, 7) },
		"an end before start": func(_, values map[string]string) { values["12345678"] = value(7, 9, 20, 10, 0) },
		"windows that fall":   func(_, values map[string]string) { values["12345678"] = value(7, 9, 20, 30, 0, 10, 30, 0) },
		"too much spent":      func(_, values map[string]string) { values["12345678"] = value(7, 9, 10, 20, 4_000_000_000_000_001) },
		"a version too large": func(_, values map[string]string) { values["12345678"] = "\xff" + value(7, 9)[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			fields, values := goodTagBuckets()
			spoil(fields, values)
			_, err := parseTagBuckets(fields, values, nil)
			require.ErrorIs(t, err, driver.ErrWrongAnswer)
		})
	}
}

// What is under the key of the tag buckets counts only while the pool has tag buckets.
func TestTagBucketsUnderAKeyOfAnotherType(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	granted(t, s, request("p", "a", 1, 1))
	pool, _ := s.keys("p")
	require.NoError(t, c.Set(t.Context(), tagBucketsKey(pool), "x", 0).Err())
	tagBuckets, err := s.TagBuckets(t.Context(), "p")
	require.NoError(t, err)
	require.Empty(t, tagBuckets)
	require.NoError(t, c.HSet(t.Context(), pool, tagBucketsField, "1").Err())
	_, err = s.TagBuckets(t.Context(), "p")
	require.ErrorIs(t, err, driver.ErrWrongAnswer)
	require.ErrorContains(t, err, "another type")
}

// Tag buckets that the server has lost alone, by eviction, are not made again: the next draw has to notice.
func TestSetSpentLeavesLostTagBucketsAlone(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	req := request("p", "a", 1, 1)
	req.Draws = []driver.Draw{{Key: 9, Total: 1, Per: time.Second, Ask: 1}}
	granted(t, s, req)
	pool, _ := s.keys("p")
	require.NoError(t, c.Del(t.Context(), tagBucketsKey(pool)).Err())
	now := time.Now().UnixMicro()
	report := driver.SpentReport{Key: 9, Start: now - 3_600_000_000, End: now + 3_600_000_000, Tokens: 5}
	require.ErrorIs(t, s.SetSpent(t.Context(), "p", report), driver.ErrTagBucketsLost)
	require.Zero(t, c.Exists(t.Context(), tagBucketsKey(pool)).Val())
	for _, reply := range []any{nil, "set", []any{"set"}, []any{"other", "1"}, []any{"set", "x"}, []any{1, "1"}} {
		require.ErrorIs(t, parseSetSpent(reply, &report), driver.ErrWrongAnswer)
	}
}
