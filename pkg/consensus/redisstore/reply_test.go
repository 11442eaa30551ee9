package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// goodReply is what a server answers to the first request of a in pool p.
func goodReply() []any {
	return []any{
		"granted", "1763718400123456", "7", "10000", "1500", "lost_row", "",
		[]any{
			"meta", "whatever",
			"b\x001", "0 1763718400123000 30 4 5 10 30 40 2 a 1 \x00busy\x00",
			"a\x001", "0 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2 ",
			"c\x001", "3 1 0 9 9 0 0 0 0 ",
			"c\x002", "1 1 500000000 9 9 500000000 0 0 0 ",
			"d\x001", "2 1 600000000 9 9 0 600000000 0 0 ",
			"\x00doc\x00limit", "65536 {\"max\": 7}\x00",
			"\x00doc\x00known", "9223372036854775807",
			"\x00tills", "1",
		},
		"1763718400000000", "90000000", string(appendNumbers(nil, 5, 0, 1763718400123499, 1, 1500, 0, 0, 6, 2, 0, 7)), "1763718400999999",
		string(appendNumbers(nil, 3, 9, 20, 0, 1<<50, 0)),
	}
}

func TestParseSync(t *testing.T) {
	req := goodRequest()
	answer, policy, err := parseSync(goodReply(), &req)
	require.NoError(t, err)
	require.Empty(t, policy)
	require.Equal(t, driver.Answer{
		Seq: 1, Nonce: 9223372036854775810, Time: 1763718400123456, Revision: 7, Lease: 10 * time.Second,
		Frozen: 1500 * time.Microsecond, FrozenBy: driver.FreezeLostRow,
		Grant: driver.Grant{
			Share: 8, Live: 2, PoolSize: 2, Agreed: true, Closed: driver.Whole,
			Roster: []driver.RosterRow{
				{ID: "a", Claim: 9, Demand: driver.Whole, PoolSize: 2, Left: 15 * time.Second},
				{
					ID: "b", Claim: 30, Demand: 40, PoolSize: 2, Note: "a 1 ", Busy: "busy\x00",
					Silent: 456 * time.Microsecond, Left: 15*time.Second - 456*time.Microsecond,
				},
			},
		},
		Documents: []driver.Document{{Name: "limit", Version: 65536, Body: []byte("{\"max\": 7}\x00")}, {Name: "lost"}},
		Epoch:     1763718400000000, Silence: 90 * time.Second,
		Draws: []driver.Drawn{
			{Key: 8, Tokens: 5, Paid: 1763718400123499, Lack: driver.LackTotal, Again: 1500 * time.Microsecond},
			{Key: 9, Paid: 6, Lack: driver.LackBudget, Spent: []int64{7}},
		},
		Wall: 1763718400999999, TagSlots: []driver.TagGrant{{Key: 7, Granted: 3, Claimed: 9, Demand: 20}, {Key: 8, Claimed: 1 << 50}},
	}, answer)
}

// goodRequest is the request that goodReply answers.
func goodRequest() driver.Request {
	req := request("p", "a", 1, 1)
	req.Documents = []driver.DocumentReport{{Name: "lost", Version: 5}, {Name: "known", Version: 1<<63 - 1}, {Name: "other"}}
	req.Draws = []driver.Draw{{Key: 8}, {Key: 9, Budgets: make([]driver.BudgetDraw, 1)}}
	req.TagSlots = []driver.TagSlots{{Key: 7}, {Key: 8}}
	return req
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
		"nothing":               func([]any) any { return nil },
		"a string":              func([]any) any { return "granted" },
		"an empty list":         func([]any) any { return []any{} },
		"a number for a status": part(0, int64(0)),
		"unknown status":        part(0, "perhaps"),
		"too short":             func(reply []any) any { return reply[:12] },
		"too long":              func(reply []any) any { return append(reply, "") },
		"time is a number":      part(1, int64(1)),
		"time is negative":      part(1, "-1"),
		"time is a fraction":    part(1, "1.5"),
		"time in Lua's format":  part(1, "1.763718400123e+15"),
		"time is too large":     part(1, "9007199254740992"),
		"revision is no number": part(2, "x"),
		"revision has 64 bits":  part(2, "9223372036854775808"),
		"no lease":              part(3, "0"),
		"lease beyond all":      part(3, "10001"),
		"freeze is nil":         part(4, nil),
		"cause is nil":          part(5, nil),
		"rows are no list":      part(7, "rows"),
		"rows are none":         part(7, []any{}),
		"rows are odd":          part(7, []any{"meta"}),
		"name is nil":           field(0, nil),
		"value is a number":     field(1, int64(7)),
		"value is nil":          field(5, nil),
		"own row is gone":       field(4, "x\x001"),
		"own row is closed":     own("2 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2 "),
		"own row has other seq": own("0 1763718400123456 9 2 9223372036854775810 9 8 1000000000 2 "),
		"own row, other nonce":  own("0 1763718400123456 9 1 9223372036854775811 9 8 1000000000 2 "),
		"row is empty":          own(""),
		"row of unknown state":  own("4 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2 "),
		"row is cut":            own("0 1763718400123456 9 1 9223372036854775810 9 8 10000"),
		"share above the whole": own("0 1763718400123456 9 1 9223372036854775810 9 1000000001 1000000000 2 "),
		"negative share":        own("0 1763718400123456 9 1 9223372036854775810 9 -8 1000000000 2 "),
		"pool size beyond all":  own("0 1763718400123456 9 1 9223372036854775810 9 8 1000000000 1000001 "),
		"beginning is nil":      part(8, nil),
		"silence is negative":   part(9, "-1"),
		"silence is too large":  part(9, "9007199254740992"),
		"note beyond all":       own("0 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2 " + strings.Repeat("n", 129)),
		"nothing busy":          own("0 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2 \x00"),
		"too much busy":         own("0 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2 \x00" + strings.Repeat("b", wire.MaxBusyBytes+1)),
		"draws are nil":         part(10, nil),
		"draws are cut":         part(10, string(appendNumbers(nil, 5, 0, 0, 1, 1500, 0, 0, 0, 2, 0))),
		"draws are too many":    part(10, string(appendNumbers(nil, 5, 0, 0, 1, 1500, 0, 0, 0, 2, 0, 7, 0))),
		"a negative draw":       part(10, string(appendNumbers(nil, -5, 0, 0, 1, 1500, 0, 0, 0, 2, 0, 7))),
		"a draw of no number":   part(10, strings.Repeat("\xff", 88)),
		"the clock is nil":      part(11, nil),
		"the clock is negative": part(11, "-1"),
		"slots are nil":         part(12, nil),
		"slots are cut":         part(12, string(appendNumbers(nil, 3, 9, 20, 0, 1))),
		"slots are too many":    part(12, string(appendNumbers(nil, 3, 9, 20, 0, 1, 2, 3))),
		"negative slots":        part(12, string(appendNumbers(nil, 3, 9, 20, 0, 1, -2))),
		"tags are cut":          own("0 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2+20 " + strings.Repeat("\x01", 19)),
		"tags are no claims":    own("0 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2+21 " + strings.Repeat("\x01", 21)),
		"tags of no size":       own("0 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2+ " + strings.Repeat("\x01", 20)),
		"too many slots":        own("0 1763718400123456 9 1 9223372036854775810 9 8 1000000000 2+20 " + strings.Repeat("\xff", 20)),
		"claim beyond all":      own("0 1763718400123456 1000000001 1 9223372036854775810 9 8 1000000000 2 "),
		"document twice":        field(8, "\x00doc\x00known"),
		"too many documents": func(reply []any) any {
			fields, _ := reply[7].([]any)
			for i := range 7 {
				fields = append(fields, "\x00doc\x00"+strconv.Itoa(i), "1 x")
			}
			reply[7] = fields
			return reply
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := goodRequest()
			answer, _, err := parseSync(spoil(goodReply()), &req)
			require.ErrorIs(t, err, driver.ErrWrongAnswer)
			require.Zero(t, answer)
		})
	}
}

// Fields that nobody knows are left out, whoever wrote them.
func TestUnknownFieldsAreLeftOut(t *testing.T) {
	req := goodRequest()
	want, _, err := parseSync(goodReply(), &req)
	require.NoError(t, err)
	reply := goodReply()
	fields, _ := reply[7].([]any)
	for _, name := range []string{
		"", "x", "\x00", "\x00x", "x\x00", "\x00row\x00limit", "\x00doc\x00", "\x00doc\x00Limit", "\x00doc\x00" + strings.Repeat("n", 33),
	} {
		fields = append(fields, name, "0 1 2 3")
	}
	reply[7] = fields
	got, _, err := parseSync(reply, &req)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
