package redisstore

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// with returns the request with reports on documents.
func with(req driver.Request, reports ...driver.DocumentReport) driver.Request {
	req.Documents = reports
	return req
}

// TestBodiesThatAreKnownAreNotSent looks at what the server replies.
func TestBodiesThatAreKnownAreNotSent(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	body := []byte(strings.Repeat("b", wire.MaxDocumentBytes))
	granted(t, s, with(request("p", "a", 1, 1), driver.DocumentReport{Name: "limit", Version: 65536, Body: body}))
	key, marker := s.keys("p")
	next := uint64(1)
	valueFor := func(report driver.DocumentReport) string {
		next++
		req := with(request("p", "a", next, 1), report)
		reply, err := syncScript.Run(t.Context(), c, []string{key, marker}, syncArgs(&req, s.longest, false, "", 0)...).Slice()
		require.NoError(t, err)
		fields, ok := reply[7].([]any)
		require.True(t, ok)
		i := slices.Index(fields, any(documentField+"limit"))
		value, ok := fields[i+1].(string)
		require.True(t, ok)
		return value
	}
	whole := "65536 " + string(body)
	for _, test := range []struct {
		report driver.DocumentReport
		want   string
	}{
		{driver.DocumentReport{Name: "limit", Version: 65536}, "65536"},
		{driver.DocumentReport{Name: "limit", Version: 65536, Base: 65536, Body: body}, "65536"},
		{driver.DocumentReport{Name: "limit", Version: 65537}, whole},
		{driver.DocumentReport{Name: "other", Version: 65536}, whole},
		{driver.DocumentReport{Name: "limit", Version: 65536, Base: 1, Body: []byte("x")}, whole},
	} {
		require.Equal(t, test.want, valueFor(test.report))
	}
	require.Equal(t, whole, c.HGet(t.Context(), key, documentField+"limit").Val(), "it stays on record")
}

// TestOneRequestPerSync counts at the server: documents come with the sync, saving one is one request, and so is loading.
func TestOneRequestPerSync(t *testing.T) {
	server := testenv.Redis(t)
	s := New(client(t, ClientOptions(server.Addr())))
	granted(t, s, request("p", "a", 1, 1))
	save := driver.DocumentReport{Name: "limit", Version: 1, Body: []byte("x")}
	_, err := s.Save(t.Context(), "other", save) // loads the script
	require.ErrorIs(t, err, driver.ErrNoPool)
	sync := map[string]int64{"evalsha": 1, "info": 1, "time": 1, "hmget": 1, "hgetall": 1, "hset": 1, "pexpire": 2}
	require.Equal(t, sync, calls(t, server, func() { granted(t, s, request("p", "a", 2, 1)) }))
	require.Equal(t, sync, calls(t, server, func() {
		granted(t, s, with(request("p", "a", 3, 1), save, driver.DocumentReport{Name: "ramp", Version: 1, Body: []byte("y")}))
	}))
	require.Equal(t, sync, calls(t, server, func() {
		granted(t, s, with(request("p", "a", 4, 1), driver.DocumentReport{Name: "limit", Version: 1}))
	}))
	require.Equal(t, map[string]int64{"evalsha": 1, "hmget": 1, "hset": 1, "pexpire": 1}, calls(t, server, func() {
		_, err := s.Save(t.Context(), "p", driver.DocumentReport{Name: "limit", Version: 2, Base: 1, Body: []byte("x")})
		require.NoError(t, err)
	}))
	require.Equal(t, map[string]int64{"hgetall": 1}, calls(t, server, func() {
		docs, _, err := s.Load(t.Context(), "p")
		require.NoError(t, err)
		require.Len(t, docs, 2)
	}))
}

// unversioned are values of a document's field that no release writes.
var unversioned = []string{
	"", " ", "x", "one x", "319", "319 ", " 319 x", "0 x", "00 x", "0319 x", "-1 x", "+1 x", "1.5 x", "1e3 x", "x19 body", "319\x00x",
	"9223372036854775808 x", "99999999999999999999 x", strings.Repeat("9", 400) + " x", "319 " + strings.Repeat("x", wire.MaxDocumentBytes+1),
}

// Without a version a document counts as the oldest one, with a body that nobody can read. Changes replace it, and so do those who have a
// later version.
func TestDocumentsWithoutAVersion(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	pool, _ := s.keys("p")
	n := uint64(0)
	sync := func(report driver.DocumentReport) []driver.Document {
		n++
		return granted(t, s, with(request("p", "a", n, 1), report)).Documents
	}
	sync(driver.DocumentReport{Name: "limit"})
	want := []driver.Document{{Name: "limit", Version: 1, Body: []byte("damaged")}}
	for _, value := range unversioned {
		spoil := func() { require.NoError(t, c.HSet(t.Context(), pool, documentField+"limit", value).Err()) }
		spoil()
		require.Equal(t, want, sync(driver.DocumentReport{Name: "limit"}), "%.40q", value)
		require.Equal(t, want, sync(driver.DocumentReport{Name: "limit", Version: 319}), "%.40q", value)
		require.Empty(t, sync(driver.DocumentReport{Name: "limit", Version: 1}), "%.40q", value)
		docs, _, err := s.Load(t.Context(), "p")
		require.NoError(t, err)
		require.Equal(t, want, docs, "%.40q", value)

		change := driver.DocumentReport{Name: "limit", Version: 65536, Base: 319, Body: []byte("x")}
		_, err = s.Save(t.Context(), "p", change)
		require.ErrorContains(t, err, `the document "limit" has version 1, expected: 319`, "%.40q", value)
		require.Equal(t, want, sync(change))
		change.Base = 1
		_, err = s.Save(t.Context(), "p", change)
		require.NoError(t, err, "%.40q", value)
		require.Equal(t, "65536 x", c.HGet(t.Context(), pool, documentField+"limit").Val())

		spoil()
		require.Empty(t, sync(driver.DocumentReport{Name: "limit", Version: 319, Base: 319, Body: []byte("y")}), "%.40q", value)
		require.Equal(t, "319 y", c.HGet(t.Context(), pool, documentField+"limit").Val())
	}
}

func TestParseSave(t *testing.T) {
	d := driver.DocumentReport{Name: "limit", Version: 6, Base: 5, Body: []byte("x")}
	current, err := parseSave([]any{"saved", "6"}, &d)
	require.NoError(t, err)
	require.Equal(t, driver.Version(6), current)
	current, err = parseSave([]any{"conflict", "9223372036854775807"}, &d)
	require.Equal(t, &driver.ConflictError{Name: "limit", Base: 5, Current: 1<<63 - 1}, err)
	require.Equal(t, driver.Version(1<<63-1), current)
	_, err = parseSave([]any{"no pool", "0"}, &d)
	require.ErrorIs(t, err, driver.ErrNoPool)
	_, err = parseSave([]any{"too many", "0"}, &d)
	require.EqualError(t, err, `consensus: Name is "limit", allowed: one of the 8 documents that the pool has already`)
}

// Any reply to a save is an error, or tells a version that can be saved upon.
func FuzzParseSave(f *testing.F) {
	for _, seed := range []string{
		"saved|6", "conflict|5", "no pool|0", "too many|0", "conflict|9223372036854775808", "saved|x", "saved",
		"perhaps|1", "int=1|int=1", "saved|nil", "[|]|[|]", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := driver.DocumentReport{Name: "limit", Version: 6, Base: 5, Body: []byte("x")}
		words := strings.Split(text, "|")
		current, err := parseSave(replyOf(&words), &d)
		require.LessOrEqual(t, uint64(current), uint64(1<<63-1))
		var conflict *driver.ConflictError
		var full *driver.RequestError
		switch {
		case err == nil:
			require.Equal(t, d.Version, current)
		case errors.As(err, &conflict):
			require.Equal(t, conflict.Current, current)
		default:
			require.Zero(t, current)
			require.True(t, errors.As(err, &full) || errors.Is(err, driver.ErrNoPool) || errors.Is(err, driver.ErrWrongAnswer), "%v", err)
		}
		_, err = parseSave(text, &d)
		require.ErrorIs(t, err, driver.ErrWrongAnswer)
	})
}

// Any fields are an error, or documents and a roster in order.
func FuzzParseLoad(f *testing.F) {
	const meta = "meta|1 s 5 20 20 0 0 - 10000 1 0 7 0 0 1|"
	f.Add(meta + "\x00doc\x00limit|65536 {}|\x00doc\x00a|1 \x00|a\x001|0 1 9 1 9223372036854775810 1 9 8 1000000000 2 0  3 max")
	f.Add(meta + "\x00doc\x00limit|65536")
	f.Add(meta + "\x00doc\x00LIMIT|1 x")
	f.Add("meta|2 s 5 20 20 0 0 - 10000 1 0 7 0 0 1")
	f.Add("x|y")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, "|")
		fields := map[string]string{}
		for i := 0; i+1 < len(words); i += 2 {
			fields[words[i]] = words[i+1]
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		docs, roster, err := parseLoad(fields)
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<10+64*len(text)))
		if err != nil {
			require.True(t, errors.Is(err, driver.ErrWrongAnswer) || errors.Is(err, driver.ErrNoPool), "%v", err)
			require.Empty(t, docs)
			require.Empty(t, roster)
			require.Less(t, len(err.Error()), 2000)
			return
		}
		require.LessOrEqual(t, len(docs), wire.MaxDocuments)
		for i, d := range docs {
			require.True(t, i == 0 || docs[i-1].Name < d.Name)
			// What is loaded can be changed.
			change := driver.DocumentReport{Name: d.Name, Version: d.Version, Base: d.Version - 1, Body: d.Body}
			require.NoError(t, change.ValidateSave("p"), "%+v", d)
			if string(d.Body) != damagedBody {
				require.Equal(t, strconv.FormatUint(uint64(d.Version), 10)+" "+string(d.Body), fields[documentField+d.Name])
			}
		}
		require.True(t, slices.IsSortedFunc(roster, func(a, b driver.RosterRow) int { return strings.Compare(a.ID, b.ID) }))
	})
}
