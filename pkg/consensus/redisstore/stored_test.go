package redisstore

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// stored reads the record back from the server.
func (m *model) stored() consensus.Record {
	fields := m.client.HGetAll(m.t.Context(), m.key).Val()
	var r consensus.Record
	var rows, claims, oldest int64 // what meta says of all rows
	for name, value := range fields {
		part := strings.Split(value, " ")
		if name == metaField {
			require.Contains(m.t, []int{12, 25}, len(part))
			r.Store, r.Revision = part[1], m.uint(part[2])
			r.Clock, r.Wall = m.int(part[3]), m.int(part[4])
			r.FrozenUntil, r.FrozenSince = m.int(part[5]), m.int(part[6])
			if part[7] != noCause {
				r.FrozenBy = consensus.FreezeCause(part[7])
			}
			r.Lease = time.Duration(m.int(part[8])) * time.Millisecond
			rows, claims, oldest = m.int(part[9]), m.int(part[10]), m.int(part[11])
			if len(part) > 12 {
				r.Issuer = m.storedIssuer(part[12:])
			}
			continue
		}
		r.Rows = append(r.Rows, m.storedRow(name, value))
	}
	require.Len(m.t, r.Rows, int(rows))
	require.Equal(m.t, int64(r.Claims()), claims)
	for _, row := range r.Rows {
		require.GreaterOrEqual(m.t, row.LastSeen, oldest)
	}
	return sorted(r)
}

func (m *model) storedIssuer(part []string) consensus.Issuer {
	require.Equal(m.t, "P", part[0])
	return consensus.Issuer{
		Issuing: part[1] == "1", Spacing: time.Duration(m.int(part[2])),
		SpacingUntil: m.int(part[3]), StrictUntil: m.int(part[4]), SharesUntil: m.int(part[5]),
		Held: m.int(part[6]), Hold: m.int(part[7]), Reach: m.int(part[8]), Step: time.Duration(m.int(part[9])),
		Count: int(m.int(part[10])), Serial: m.uint(part[11]), Last: m.int(part[12]),
	}
}

func (m *model) storedRow(name, value string) consensus.Row {
	id, incarnation, _ := strings.Cut(name, "\x00")
	part := strings.SplitN(value, " ", 7)
	w := consensus.Row{
		RowKey: consensus.RowKey{ID: id, Incarnation: incarnation},
		State:  consensus.RowState(m.int(part[0])), LastSeen: m.int(part[1]),
		Seq: m.uint(part[3]), Nonce: m.uint(part[4]),
	}
	var claims consensus.Share
	live := "0" + value[1:]
	parsed, _, err := parseRow(live)
	require.NoError(m.t, err)
	for _, e := range parsed.entries {
		w.Entries = append(w.Entries, consensus.Entry{
			Tag: e.tag, Claim: max(e.inUse, e.answered), InUse: e.inUse, Answered: e.answered, Demand: e.demand, PoolSize: e.poolSize,
		})
		claims += max(e.inUse, e.answered)
	}
	require.Equal(m.t, int64(claims), m.int(part[2]), "sum of claims")
	return w
}

func (m *model) int(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(m.t, err)
	return n
}

func (m *model) uint(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(m.t, err)
	return n
}

// sorted returns the record with rows and entries in order and no empty slices.
func sorted(r consensus.Record) consensus.Record {
	r.Rows = cloneRows(r.Rows)
	slices.SortFunc(r.Rows, func(a, b consensus.Row) int {
		return strings.Compare(a.ID+"\x00"+a.Incarnation, b.ID+"\x00"+b.Incarnation)
	})
	for i := range r.Rows {
		slices.SortFunc(r.Rows[i].Entries, func(a, b consensus.Entry) int { return strings.Compare(a.Tag, b.Tag) })
	}
	return r
}

func cloneRows(rows []consensus.Row) []consensus.Row {
	var copied []consensus.Row
	for _, row := range rows {
		row.Entries = append([]consensus.Entry(nil), row.Entries...)
		copied = append(copied, row)
	}
	return copied
}
