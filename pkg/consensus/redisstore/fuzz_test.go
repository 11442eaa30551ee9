package redisstore

import (
	"errors"
	"math/big"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// replyOf makes a list of words up to the closing bracket: of every kind of value
// that a reply of Redis can hold, also of the kinds that no script returns.
func replyOf(words *[]string) []any {
	list := []any{}
	for len(*words) > 0 {
		word := (*words)[0]
		*words = (*words)[1:]
		kind, text, _ := strings.Cut(word, "=")
		switch kind {
		case "[":
			list = append(list, replyOf(words))
		case "]":
			return list
		case "nil":
			list = append(list, nil)
		case "int":
			n, _ := strconv.ParseInt(text, 10, 64)
			list = append(list, n)
		case "float":
			n, _ := strconv.ParseFloat(text, 64)
			list = append(list, n)
		case "bool":
			list = append(list, text == "true")
		case "big":
			list = append(list, big.NewInt(int64(len(text))))
		case "error":
			list = append(list, errors.New(text))
		case "map":
			list = append(list, map[any]any{text: text})
		case "bytes":
			list = append(list, []byte(text))
		default:
			list = append(list, word)
		}
	}
	return list
}

// requireAnswer fails unless a reply that was taken can be used, and reported back.
func requireAnswer(t *testing.T, req *driver.Request, answer *driver.Answer) {
	t.Helper()
	require.Equal(t, req.Seq, answer.Seq)
	require.Equal(t, req.Nonce, answer.Nonce)
	if answer.Status != driver.Granted {
		require.Equal(t, driver.Answer{Status: answer.Status, Seq: req.Seq, Nonce: req.Nonce}, *answer)
		return
	}
	require.True(t, answer.Lease > 0 && answer.Lease <= driver.MaxLease)
	require.GreaterOrEqual(t, answer.Frozen, time.Duration(0))
	require.False(t, answer.Frozen == 0 && answer.FrozenBy != "")
	next := driver.Request{
		Pool: req.Pool, ID: req.ID, Incarnation: req.Incarnation, Seq: req.Seq + 1, LastSeq: req.Seq, LastNonce: req.Nonce,
		LastTime: answer.Time, Revision: answer.Revision, Lease: req.Lease,
	}
	require.Len(t, answer.Roster, answer.Live)
	require.True(t, slices.IsSortedFunc(answer.Roster, func(a, b driver.RosterRow) int { return strings.Compare(a.ID, b.ID) }))
	agreed := true
	for _, row := range answer.Roster {
		require.NotEmpty(t, row.ID)
		require.True(t, row.Claim >= 0 && row.Claim <= driver.Whole && row.Demand >= 0 && row.Demand <= driver.Whole)
		require.LessOrEqual(t, row.PoolSize, answer.PoolSize)
		agreed = agreed && row.PoolSize == answer.Live
	}
	require.Equal(t, agreed && answer.PoolSize == answer.Live, answer.Agreed)
	// What cannot be reported as in use must not be put to use.
	next.Report = driver.Report{InUse: answer.Share, Wanted: answer.Share, PoolSize: answer.PoolSize}
	require.True(t, answer.Epoch >= 0 && answer.Silence >= 0)
	require.LessOrEqual(t, len(answer.Documents), wire.MaxDocuments+len(req.Documents))
	for i, d := range answer.Documents {
		require.True(t, i == 0 || answer.Documents[i-1].Name < d.Name)
		require.Equal(t, d.Version == 0, len(d.Body) == 0)
		if d.Version > 0 {
			next.Documents = append(next.Documents, driver.DocumentReport{Name: d.Name, Version: d.Version, Base: d.Version, Body: d.Body})
		}
	}
	require.NoError(t, next.Validate(), "an answer can be reported back")
}

// Any reply is an error or an answer that can be used.
func FuzzParseSync(f *testing.F) {
	f.Add("granted|1763718400123456|7|10000|1500|lost_row||[|meta|x|b\x001|0 1 30 4 5 1 10 30 40 2 0  0 |" +
		"a\x001|0 1 9 1 9223372036854775810 1 9 8 1000000000 2 0  0 |]|5|6||7|")
	f.Add("granted|1|1|1|0|-|allkeys-lru|[|a\x001|0 1 0 1 9223372036854775810 0 0 0 0 a b |c\x001|nil|]|5|6||7|")
	f.Add("granted|9007199254740991|9223372036854775807|1|9007199254740991|x||[|a\x001|0 1 0 1 9223372036854775810 |]|0|0||7|")
	f.Add("granted|1|18446744073709551615|10000|0|-||[|a\x001|0 1 9 1 9223372036854775810 9 8 1 18446744073709551615 |]|0|0||7|")
	for _, beyond := range []string{"1000000001 8 9 2", "9 1000000001 9 2", "9 8 1000000001 2", "9 8 9 1000001", "-1 8 9 2"} {
		f.Add("granted|1|7|10000|0|-||[|a\x001|0 1 9 1 9223372036854775810 " + beyond + " |]|5|6||7|")
	}
	const row = "a\x001|0 1 9 1 9223372036854775810 9 8 1 2 max |"
	f.Add("granted|1|7|10000|0|-||[|" + row + "\x00doc\x00limit|65536 {}|\x00doc\x00ramp|7|]|1763718400000000|90000000||7|")
	f.Add("granted|1|7|10000|0|-||[|" + row + "\x00doc\x00limit|65536|\x00doc\x00limit|1 x|]|0|0||7|")
	f.Add("granted|1|7|10000|0|-||[|" + row + "\x00doc\x00LIMIT|1 x|\x00row\x00limit|0 x|]|9007199254740992|-1||7|")
	f.Add("granted|1|7|10000|0|-||[|a\x001|0 1 9 1 9223372036854775810 9 8 1 2+20 " +
		"\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03note|" +
		"b\x001|0 1 9 1 1 9 8 1 2+19 xxxxxxxxxxxxxxxxxxxx|]|5|6||7|")
	f.Add("late")
	f.Add("int=1|float=1|bool=true|big=1|error=x|map=x|bytes=x")
	f.Add("granted|[|]|[|[|]|]")
	f.Fuzz(func(t *testing.T, text string) {
		req := request("p", "a", 1, 1)
		req.Documents = []driver.DocumentReport{{Name: "ramp", Version: 7}, {Name: "gone", Version: 9}, {Name: "none"}}
		parts := strings.Split(text, "|")
		reply := replyOf(&parts)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer, policy, err := parseSync(reply, &req)
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<10+64*len(text)))
		if err != nil {
			require.ErrorIs(t, err, driver.ErrWrongAnswer)
			require.Zero(t, answer)
			require.Empty(t, policy)
			require.Less(t, len(err.Error()), 2000)
			return
		}
		requireAnswer(t, &req, &answer)

		var whole any = text // no list at all
		_, _, err = parseSync(whole, &req)
		require.ErrorIs(t, err, driver.ErrWrongAnswer)
	})
}

// Any reply to a reservation is an error or slots that can be used and given back.
func FuzzParseReserve(f *testing.F) {
	f.Add("int=2|int=1763718400123456|int=0|int=7|int=333333334|int=12|int=999")
	f.Add("int=0|int=1|int=922337203|int=6854775807|int=0|int=1|int=1000|int=1|int=5|older_record")
	f.Add("int=0|int=1|int=922337203|int=6854775808|int=0|int=1|int=1000|int=1|int=5|-")
	f.Add("int=4|int=1|int=0|int=7|int=1|int=1|int=1")
	f.Add("int=1|int=-1|float=0|nil|int=1|bool=true|int=1")
	f.Add("[|]")
	f.Fuzz(func(t *testing.T, text string) {
		req := driver.Reserve{Pool: "p", Count: 3, Spacing: time.Second, Ahead: 5, Lease: driver.MinLease}
		parts := strings.Split(text, "|")
		res, err := parseReserve(replyOf(&parts), &req)
		if err != nil {
			require.ErrorIs(t, err, driver.ErrWrongAnswer)
			require.Zero(t, res)
			require.Less(t, len(err.Error()), 2000)
			return
		}
		require.LessOrEqual(t, res.Count, req.Count)
		require.GreaterOrEqual(t, min(res.Wait, res.Spacing, res.Retry, res.Frozen), time.Duration(0))
		req.Return, req.Revision = res.Last, res.Revision
		require.NoError(t, req.Validate(), "an answer can be reported back")
	})
}

// A replyError is an error of the server's.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

// Whatever a server says is wrong, the error says it, and tells what is lasting.
func FuzzExplain(f *testing.F) {
	for _, seed := range []string{
		"NUMATHROTTLE_DATA the hash is not a pool", "NUMATHROTTLE_INFO x", "WRONGTYPE x", "NOPERM x", "NOSCRIPT", "OOM", "", "ERR ACL failure in script",
		"%s%d",
	} {
		f.Add("ns/pipe/map", seed)
	}
	f.Fuzz(func(t *testing.T, pool, text string) {
		for _, cause := range []error{replyError(text), errors.New(text)} {
			err := explain("sync", pool, defaultPrefix, cause)
			require.True(t, strings.HasPrefix(err.Error(), "redisstore: sync of pool "+strconv.Quote(pool)), err)
			_, ofServer := errors.AsType[redis.Error](cause)
			lasting := ofServer && (strings.HasPrefix(text, "NUMATHROTTLE_DATA ") || strings.Contains(text, "WRONGTYPE"))
			require.Equal(t, lasting, errors.Is(err, driver.ErrWrongAnswer))
		}
	})
}

// Different pools have different keys, none of which is a marker, and each lies
// with its marker in the hash slot that the prefix and the group name.
func FuzzKeys(f *testing.F) {
	f.Add("numathrottle", "ns/pipe/map", "ns/pipe/mop")
	f.Add("p:1", "{a}", "a}:pool:")
	f.Add("p", "", "marker")
	f.Fuzz(func(t *testing.T, prefix, a, b string) {
		if prefix == "" || strings.ContainsAny(prefix, "{}\x00") {
			return
		}
		s := &Store{prefix: prefix}
		poolA, markerA := s.keys(a)
		poolB, markerB := s.keys(b)
		require.Equal(t, a == b, poolA == poolB)
		for _, key := range []string{poolA, markerA, poolB, markerB} {
			tag, rest, closed := strings.Cut(key, "}")
			require.True(t, closed)
			require.True(t, strings.HasPrefix(tag, "{"+prefix+":"))
			require.Equal(t, key == markerA || key == markerB, rest == ":marker")
			group, err := strconv.Atoi(strings.TrimPrefix(tag, "{"+prefix+":"))
			require.NoError(t, err)
			require.True(t, group >= 0 && group < groups)
		}
		require.Equal(t, tagOf(poolA), tagOf(markerA))
		require.Equal(t, tagOf(poolB), tagOf(markerB))
	})
}

func tagOf(key string) string {
	tag, _, _ := strings.Cut(key, "}")
	return tag
}
