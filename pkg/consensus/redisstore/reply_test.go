package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// goodReply is what a server answers to the first request of a in pool p.
func goodReply() []any {
	return []any{"granted", "1763718400123456", "7", "10000", "1500", "lost_row", "", []any{
		"meta", "whatever",
		"b\x001", "0 1763718400123000 30 4 5 0 0 2 10 30 40 2 0  5 6 7 8 3 a b",
		"a\x001", "0 1763718400123456 9 1 9223372036854775810 0 0 1 9 8 1000000000 2 0 ",
		"c\x001", "3 1 0 9 9 9 9 0",
	}}
}

func TestParseSync(t *testing.T) {
	req := request("p", "a", 1, 1)
	answer, policy, err := parseSync(goodReply(), &req)
	require.NoError(t, err)
	require.Empty(t, policy)
	require.Equal(t, consensus.Answer{
		Seq: 1, Nonce: 9223372036854775810, Time: 1763718400123456, Revision: 7, Lease: 10 * time.Second,
		Frozen: 1500 * time.Microsecond, FrozenBy: consensus.FreezeLostRow,
		Tags: []consensus.TagAnswer{{
			Share: 8, Live: 2, PoolSize: 2, Agreed: true,
			Roster: []consensus.RosterRow{
				{ID: "a", Claim: 9, Demand: consensus.Whole, PoolSize: 2},
				{ID: "b", Claim: 30, Demand: 40, PoolSize: 2},
			},
		}},
	}, answer)
}

func TestParseSyncWrongShapes(t *testing.T) {
	part := func(i int, value any) func([]any) any {
		return func(reply []any) any { reply[i] = value; return reply }
	}
	field := func(i int, value any) func([]any) any {
		return func(reply []any) any {
			fields, _ := reply[7].([]any)
			fields[i] = value
			return reply
		}
	}
	own := func(value string) func([]any) any { return field(5, value) }
	for name, spoil := range map[string]func(reply []any) any{
		"nothing":                func([]any) any { return nil },
		"a string":               func([]any) any { return "granted" },
		"an empty list":          func([]any) any { return []any{} },
		"a number for a status":  part(0, int64(0)),
		"unknown status":         part(0, "perhaps"),
		"too short":              func(reply []any) any { return reply[:7] },
		"too long":               func(reply []any) any { return append(reply, "") },
		"time is a number":       part(1, int64(1)),
		"time is negative":       part(1, "-1"),
		"time is a fraction":     part(1, "1.5"),
		"time in Lua's format":   part(1, "1.763718400123e+15"),
		"time is too large":      part(1, "9007199254740992"),
		"revision is no number":  part(2, "x"),
		"revision has 65 bits":   part(2, "18446744073709551616"),
		"no lease":               part(3, "0"),
		"lease beyond all":       part(3, "10001"),
		"freeze is nil":          part(4, nil),
		"cause is nil":           part(5, nil),
		"rows are no list":       part(7, "rows"),
		"rows are none":          part(7, []any{}),
		"rows are odd":           part(7, []any{"meta"}),
		"name is nil":            field(0, nil),
		"value is a number":      field(1, int64(7)),
		"name without ID":        field(2, "\x001"),
		"name of no row":         field(2, "b"),
		"name with no life":      field(2, "b\x00"),
		"value is nil":           field(5, nil),
		"own row is gone":        field(4, "x\x001"),
		"own row is closed":      own("2 1763718400123456 9 1 9223372036854775810 0 0 1 9 8 1000000000 2 0 "),
		"own row has other seq":  own("0 1763718400123456 9 2 9223372036854775810 0 0 1 9 8 1000000000 2 0 "),
		"own row, other nonce":   own("0 1763718400123456 9 1 9223372036854775811 0 0 1 9 8 1000000000 2 0 "),
		"row is empty":           own(""),
		"row of unknown state":   own("4 1763718400123456 9 1 9223372036854775810 0 0 1 9 8 1000000000 2 0 "),
		"row is cut":             own("0 1763718400123456 9 1 9223372036854775810 0 0 1 9 8 10000"),
		"row goes on":            own("0 1763718400123456 9 1 9223372036854775810 0 0 1 9 8 1000000000 2 0  x"),
		"share above the whole":  own("0 1763718400123456 9 1 9223372036854775810 0 0 1 9 1000000001 1000000000 2 0 "),
		"negative share":         own("0 1763718400123456 9 1 9223372036854775810 0 0 1 9 -8 1000000000 2 0 "),
		"pool size beyond all":   own("0 1763718400123456 9 1 9223372036854775810 0 0 1 9 8 1000000000 1000001 0 "),
		"more tags than allowed": own("0 1763718400123456 9 1 9223372036854775810 0 0 65 9 8 1000000000 2 0 "),
		"fewer tags than said":   own("0 1763718400123456 9 1 9223372036854775810 0 0 2 9 8 1000000000 2 0 "),
		"tag longer than there":  own("0 1763718400123456 9 1 9223372036854775810 0 0 1 9 8 1000000000 2 5 abc"),
		"tag shorter than said":  own("0 1763718400123456 9 1 9223372036854775810 0 0 1 9 8 1000000000 2 1 abc"),
	} {
		t.Run(name, func(t *testing.T) {
			req := request("p", "a", 1, 1)
			answer, _, err := parseSync(spoil(goodReply()), &req)
			require.ErrorIs(t, err, consensus.ErrWrongAnswer)
			require.Zero(t, answer)
		})
	}
}

// FuzzParseSync: any reply is an error or an answer that can be used.
func FuzzParseSync(f *testing.F) {
	f.Add("granted|1763718400123456|7|10000|1500|lost_row||[|meta|x|b\x001|0 1 30 4 5 0 0 1 10 30 40 2 0 |" +
		"a\x001|0 1 9 1 9223372036854775810 0 0 1 9 8 1000000000 2 0 |]")
	f.Add("granted|1|1|1|0|-|allkeys-lru|[|a\x001|0 1 0 1 9223372036854775810 0 0 2 0 0 0 0 3 a b 0 0 0 0 0 |c\x001|nil|]")
	f.Add("late")
	f.Add("granted|[|]|[|[|]|]")
	f.Fuzz(func(t *testing.T, text string) {
		req := request("p", "a", 1, 1)
		parts := strings.Split(text, "|")
		answer, _, err := parseSync(replyOf(&parts), &req)
		if err != nil {
			require.ErrorIs(t, err, consensus.ErrWrongAnswer)
			require.Zero(t, answer)
			return
		}
		require.Equal(t, req.Seq, answer.Seq)
		require.Equal(t, req.Nonce, answer.Nonce)
		if answer.Status != consensus.Granted {
			require.Empty(t, answer.Tags)
			return
		}
		require.Len(t, answer.Tags, len(req.Tags))
		require.GreaterOrEqual(t, answer.Time, int64(0))
		require.GreaterOrEqual(t, answer.Frozen, time.Duration(0))
		require.Positive(t, answer.Lease)
		require.LessOrEqual(t, answer.Lease, consensus.MaxLease)
		for _, tag := range answer.Tags {
			require.Len(t, tag.Roster, tag.Live)
			require.GreaterOrEqual(t, tag.Share, consensus.Share(0))
			require.LessOrEqual(t, tag.Share, consensus.Whole)
			for _, row := range tag.Roster {
				require.LessOrEqual(t, row.Claim, consensus.Whole)
				require.LessOrEqual(t, row.PoolSize, tag.PoolSize)
			}
		}
	})
}

// replyOf makes a list of words up to the closing bracket, which may hold others.
func replyOf(words *[]string) []any {
	list := []any{}
	for len(*words) > 0 {
		word := (*words)[0]
		*words = (*words)[1:]
		switch word {
		case "[":
			list = append(list, replyOf(words))
		case "]":
			return list
		case "nil":
			list = append(list, nil)
		case "1.":
			list = append(list, int64(1))
		default:
			list = append(list, word)
		}
	}
	return list
}
