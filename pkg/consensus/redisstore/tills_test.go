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

// goodTills are the hash of a pool and that of its tills, as far as parseTills looks at them.
func goodTills() (fields, values map[string]string) {
	version := "\x7f\xff\xff\xff\xff\xff\xff\xff"
	return map[string]string{metaField: "1 s 5 100 200 0 0 - 9000 1 0 100 0 0 0", tillsField: "1"}, map[string]string{
		"\xff\x00\x00\x00\x00\x00\x00\x01": strings.Repeat("\x00", 8) + string(appendNumbers(nil, 7, 9)),
		"\x00\x00\x00\x00\x00\x00\x00\x02": version + string(appendNumbers(nil, 5, 5, 10, 20, 3, 11, 30, 4_000_000_000_000_000)),
	}
}

func TestParseTills(t *testing.T) {
	fields, values := goodTills()
	tills, err := parseTills(fields, values, nil)
	require.NoError(t, err)
	require.Equal(t, []driver.Till{
		{Key: 2, Version: wire.MaxVersion, Paid: 5, Full: 5, Spent: []driver.Spent{
			{Start: 10, End: 20, Tokens: 3}, {Start: 11, End: 30, Tokens: 4_000_000_000_000_000},
		}},
		{Key: 0xff00000000000001, Paid: 7, Full: 9},
	}, tills)
	delete(fields, tillsField)
	tills, err = parseTills(fields, values, nil)
	require.NoError(t, err)
	require.Empty(t, tills, "they are of a pool that has ended")
	_, err = parseTills(nil, values, nil)
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
			fields, values := goodTills()
			spoil(fields, values)
			_, err := parseTills(fields, values, nil)
			require.ErrorIs(t, err, driver.ErrWrongAnswer)
		})
	}
}

// What is under the key of the tills counts only while the pool has tills.
func TestTillsUnderAKeyOfAnotherType(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	granted(t, s, request("p", "a", 1, 1))
	pool, _ := s.keys("p")
	require.NoError(t, c.Set(t.Context(), tillsKey(pool), "x", 0).Err())
	tills, err := s.Tills(t.Context(), "p")
	require.NoError(t, err)
	require.Empty(t, tills)
	require.NoError(t, c.HSet(t.Context(), pool, tillsField, "1").Err())
	_, err = s.Tills(t.Context(), "p")
	require.ErrorIs(t, err, driver.ErrWrongAnswer)
	require.ErrorContains(t, err, "another type")
}

// Tills that the server has lost alone, by eviction, are not made anew: the next draw has to notice.
func TestSetSpentLeavesLostTillsAlone(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	req := request("p", "a", 1, 1)
	req.Draws = []driver.Draw{{Key: 9, Total: 1, Per: time.Second, Ask: 1}}
	granted(t, s, req)
	pool, _ := s.keys("p")
	require.NoError(t, c.Del(t.Context(), tillsKey(pool)).Err())
	now := time.Now().UnixMicro()
	report := driver.SpentReport{Key: 9, Start: now - 3_600_000_000, End: now + 3_600_000_000, Tokens: 5}
	require.ErrorIs(t, s.SetSpent(t.Context(), "p", report), driver.ErrTillsLost)
	require.Zero(t, c.Exists(t.Context(), tillsKey(pool)).Val())
	for _, reply := range []any{nil, "set", []any{"set"}, []any{"other", "1"}, []any{"set", "x"}, []any{1, "1"}} {
		require.ErrorIs(t, parseSetSpent(reply, &report), driver.ErrWrongAnswer)
	}
}
