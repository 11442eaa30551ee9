package redisstore

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// tagKeys are keys whose bytes some formats damage or order wrongly.
var tagKeys = []uint64{0, 0x0a0d_0020_2b00_0001, 0x7fff_ffff_ffff_ffff, 1 << 63, 0xff_00ff << 40, math.MaxUint64}

// tagSlots are the slots of some tags, now and then of very many.
func (m *model) tagSlots() (slots []driver.TagSlots) {
	if m.rnd.IntN(3) == 0 {
		return nil
	}
	keys := slices.Clone(tagKeys)
	if m.rnd.IntN(30) == 0 {
		start := m.rnd.Uint64N(600)
		for key := range uint64(wire.MaxTagSlots - len(tagKeys)) {
			keys = append(keys, (start+key)<<32+1)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		number := func() int64 { return pick[int64](m, 0, 0, 1, 2, 3, m.rnd.Int64N(20), wire.MaxTokens) }
		s := driver.TagSlots{Key: key, InUse: number() % 4, Wanted: number(), Demand: number(), Total: number()}
		if s.InUse+s.Demand > 0 && m.rnd.IntN(4) > 0 {
			slots = append(slots, s)
		}
	}
	return slots
}

// noteTagSlots counts what became of the slots of tags.
func (m *model) noteTagSlots(before *driver.Record, req *driver.Request, ans *driver.Answer) {
	for i, g := range ans.TagSlots {
		s := req.TagSlots[i]
		switch {
		case req.TagSlotsBy != "" && ans.Frozen == 0 && s.Wanted > s.InUse && outdated(before, req):
			m.seen["slots outdated"]++
		case g.Granted > s.InUse:
			m.seen["slots granted"]++
		case g.Granted < s.InUse && s.Wanted >= s.InUse:
			m.seen["slots above the grant"]++
		case ans.Frozen > 0 && s.Wanted > s.InUse:
			m.seen["slots frozen"]++
		}
	}
	for _, row := range before.Rows {
		if ans.Status == driver.Behind && row.ID == req.ID && row.Incarnation == req.Incarnation && len(row.TagClaims) > 0 && len(req.TagSlots) > 0 {
			m.seen["slots beside facts"]++
		}
	}
}

// tagSumField is the prefix of the fields with the sums of a tag; see lua/tagclaims.lua.
const tagSumField = "\x00tags\x00"

// sumsOf are what rows claim of tags, and the demand of the live ones.
func sumsOf(rows []driver.Row) map[uint64][2]int64 {
	sums := map[uint64][2]int64{}
	for _, row := range rows {
		for _, c := range row.TagClaims {
			sum := sums[c.Key]
			sum[0] += c.Claim()
			if row.State == driver.RowLive {
				sum[1] += c.Demand
			}
			sums[c.Key] = sum
		}
	}
	maps.DeleteFunc(sums, func(_ uint64, sum [2]int64) bool { return sum == [2]int64{} })
	return sums
}

// requireCut fails if a reply has what live rows claim of tags, or the sums of tags: it would grow with rows times tags.
func (m *model) requireCut(reply any) {
	parts, ok := reply.([]any)
	if !ok || len(parts) < grantedParts {
		return
	}
	fields, _ := parts[7].([]any)
	for i := 0; i < len(fields); i += 2 {
		name, _ := fields[i].(string)
		value, _ := fields[i+1].(string)
		require.False(m.t, strings.HasPrefix(name, tagSumField), "%q", name)
		if row := strings.SplitN(value, " ", 10); len(row) == 10 && row[0] == "0" && strings.Index(name, "\x00") > 0 {
			require.NotContains(m.t, row[8], "+", "%q", value)
		}
	}
}

// outdated tells whether the totals of a request are by an older document than the one on record.
func outdated(before *driver.Record, req *driver.Request) bool {
	for _, d := range before.Documents {
		for _, r := range req.Documents {
			if d.Name == req.TagSlotsBy && r.Name == d.Name && r.Version < d.Version {
				return true
			}
		}
	}
	return false
}

// TestScriptsKeepTheLeaseForSlots: who joins a pool in which nobody is live brings the lease only if nobody claims slots of a tag.
func TestScriptsKeepTheLeaseForSlots(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	for seed, slots := range [][]driver.TagSlots{nil, {{Key: 1, Demand: 1}}, {{Key: 1, InUse: 1}}, {{Key: 1, Wanted: 1, Demand: 1}}} {
		m := newModel(t, c, uint64(seed))
		m.at.Remembers = math.MaxInt64
		sync := func(id, incarnation string, lease time.Duration, slots ...driver.TagSlots) {
			m.sync(driver.Request{ID: id, Incarnation: incarnation, Seq: 1, Lease: lease, Report: driver.Report{TagSlots: slots}})
		}
		sync("a", "1", 4*time.Second, slots...)
		sync("a", "2", 4*time.Second)
		m.leave(driver.Leave{ID: "a", Incarnation: "2", Seq: 2, LastSeq: 1})
		sync("b", "1", 3*time.Second)
		want := 3 * time.Second
		if seed > 1 {
			want = 4 * time.Second
		}
		require.Equal(t, want, m.record.Lease, "%v", slots)
	}
}

// TestScriptsBoundTheSlotsOfARow: facts of a third process under one incarnation find no room in the row, but those of the second do.
func TestScriptsBoundTheSlotsOfARow(t *testing.T) {
	m := newModel(t, client(t, ClientOptions(testenv.Redis(t).Addr())), 0)
	m.at.Remembers = math.MaxInt64
	for process := range uint64(4) {
		req := driver.Request{ID: "a", Incarnation: "1", Seq: 1 + 2*process, LastSeq: 2 * process, Nonce: process, Lease: driver.MinLease}
		for key := range uint64(wire.MaxTagSlots) {
			req.TagSlots = append(req.TagSlots, driver.TagSlots{Key: key<<50 + process%3, InUse: int64(1 + process), Total: 9})
		}
		m.sync(req)
		require.Len(t, m.record.Rows[0].TagClaims, min(int(process)+1, 2)*wire.MaxTagSlots)
	}
	require.Equal(t, 3, m.seen["behind"])
}

// TestMalformedSlotsAreRefused: nobody knows how to take such a row off the sums, so that it is neither closed nor changed.
func TestMalformedSlotsAreRefused(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	claim := strings.Repeat("\x00", 11) + "\x01" + strings.Repeat("\x00", 8)
	for i, spoilt := range []string{"1+19 " + claim, "1+20 " + claim[:19], "1+21 " + claim + " ", "1+x " + claim, "1+ " + claim} {
		pool := fmt.Sprint("p", i)
		granted(t, s, request(pool, "b", 1, 1))
		key, _ := s.keys(pool)
		row := fmt.Sprint("0 ", time.Now().UnixMicro(), " 1 1 ", request(pool, "b", 1, 1).Nonce, " 0 1 0 ", spoilt)
		require.NoError(t, c.HSet(t.Context(), key, "b\x001", row).Err())
		next := request(pool, "b", 1, 1)
		next.Incarnation = "2"
		for _, req := range []driver.Request{request(pool, "b", 1, 1), request(pool, "b", 2, 1), next} {
			_, err := s.Sync(t.Context(), req)
			require.ErrorIs(t, err, driver.ErrWrongAnswer, "%q", spoilt)
		}
		require.ErrorIs(t, s.Leave(t.Context(), leaving(pool, "b", 2)), driver.ErrWrongAnswer)
		require.Equal(t, row, c.HGet(t.Context(), key, "b\x001").Val())
	}
}
