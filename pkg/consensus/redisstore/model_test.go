package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// scriptedLua stands in for server.lua: what the scripts learn of the server is
// what the test has put into a hash.
const scriptedLua = `
local function server_time() return tonumber(redis.call('HGET', 'env', 'now')) end
local function server_info() return '' end
local function eviction_policy() return '' end
local function server_identity() return redis.call('HGET', 'env', 'identity') end
local function known_new() return redis.call('HGET', 'env', 'new') == '1' end
`

var (
	scriptedSync  = redis.NewScript(scriptedLua + recordLua + syncLua)
	scriptedLeave = redis.NewScript(scriptedLua + recordLua + leaveLua)
)

// TestScriptsDoWhatRecordDoes makes random steps on a consensus.Record and with
// the scripts, with the same times and identities, and compares every answer and
// everything on record after each step.
func TestScriptsDoWhatRecordDoes(t *testing.T) {
	server := testenv.Redis(t)
	c := client(t, server.Addr())
	seen := map[string]int{}
	for seed := range uint64(100) {
		m := newModel(t, c, seed)
		for range 250 {
			m.step()
		}
		for k, n := range m.seen {
			seen[k] += n
		}
	}
	t.Logf("steps by outcome: %v", seen)
	for _, outcome := range []string{
		"granted", "late", "replaced", "cloned", "removed", "repeated", "left", "not left", "share raised",
		"frozen new_record", "frozen store_identity", "frozen older_record", "frozen lost_row",
	} {
		require.Positive(t, seen[outcome], "no step ended %s", outcome)
	}
}

// model holds one pool twice.
type model struct {
	t      testing.TB
	rnd    *rand.Rand
	client redis.UniversalClient
	store  *Store
	pool   string
	key    string
	record consensus.Record
	at     consensus.At
	base   uint64 // of sequence numbers and revisions: where 64 bits matter
	last   []consensus.Request
	taken  map[string]consensus.Answer
	old    *consensus.Record
	oldRaw map[string]string
	seen   map[string]int
	life   int
	brink  consensus.RowKey // the row that is about to be removed
}

func newModel(t testing.TB, c redis.UniversalClient, seed uint64) *model {
	m := &model{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), client: c, store: New(c), pool: fmt.Sprint("model ", seed),
		at:    consensus.At{Now: 1_763_718_400_123_456, Identity: "life0", Longest: consensus.MaxLease},
		taken: map[string]consensus.Answer{}, seen: map[string]int{},
	}
	m.base = []uint64{0, 9_999_999_990, 1<<53 - 5, 9_999_999_999_999_999_990, 1<<64 - 500}[seed%5]
	m.key, _ = m.store.keys(m.pool)
	return m
}

func pick[T any](m *model, of ...T) T { return of[m.rnd.IntN(len(of))] }

// step lets some time pass, or something go wrong with the server, and makes one step.
func (m *model) step() {
	m.at.Now += pick[int64](m, 0, 1, 1000, 100_000, 1_000_000, 1_000_000, 2_500_000, 2_500_001, 750_000)
	m.at.KnownNew = pick(m, true, false)
	ctx := m.t.Context()
	switch m.rnd.IntN(200) {
	case 0:
		m.at.Now += pick[int64](m, 20_000_000, 86_400_000_000, -5_000_000, -1)
	case 1:
		m.at.Identity = pick(m, "life0", "life1", "life2")
	case 2:
		m.record = consensus.Record{}
		require.NoError(m.t, m.client.Del(ctx, m.key).Err())
	case 3:
		m.keep()
	case 4:
		m.rollBack()
	case 5:
		m.at.Longest = pick(m, 5*time.Second, consensus.MaxLease)
	}
	m.brink = consensus.RowKey{}
	if m.rnd.IntN(8) == 0 {
		m.toTheBrink()
	}
	isNew := map[bool]string{true: "1", false: "0"}[m.at.KnownNew]
	require.NoError(m.t, m.client.HSet(ctx, "env", "now", m.at.Now, "identity", m.at.Identity, "new", isNew).Err())
	if m.rnd.IntN(12) == 0 {
		m.leave()
	} else {
		m.sync()
	}
	require.Equal(m.t, sorted(m.record), m.stored(), "on record")
}

// toTheBrink sets the time to when a row is just about to be removed.
func (m *model) toTheBrink() {
	removal := consensus.Removal(m.record.Lease).Microseconds()
	for _, row := range m.record.Rows {
		left := row.LastSeen + removal - m.record.Clock
		if 0 <= left && left <= consensus.Clamp(m.record.Lease).Microseconds() {
			m.at.Now = m.record.Wall + left + pick[int64](m, 0, 1)
			m.brink = row.RowKey
			return
		}
	}
}

func (m *model) keep() {
	old := m.record
	old.Rows = cloneRows(old.Rows)
	m.old, m.oldRaw = &old, m.client.HGetAll(m.t.Context(), m.key).Val()
}

func (m *model) rollBack() {
	if m.old == nil {
		return
	}
	m.record = *m.old
	m.record.Rows = cloneRows(m.old.Rows)
	require.NoError(m.t, m.client.Del(m.t.Context(), m.key).Err())
	if len(m.oldRaw) > 0 {
		require.NoError(m.t, m.client.HSet(m.t.Context(), m.key, m.oldRaw).Err())
	}
}

func (m *model) sync() {
	req := m.request()
	want, changed := m.record.Sync(&req, m.at)
	reply, err := scriptedSync.Run(m.t.Context(), m.client, []string{m.key, "marker"}, syncArgs(&req, m.at.Longest, false)...).Result()
	require.NoError(m.t, err)
	got, _, err := parseSync(reply, &req)
	require.NoError(m.t, err)
	require.Equal(m.t, want, got, "answer to %+v", req)

	m.last = append(m.last, req)
	m.seen[want.Status.String()]++
	if want.Status == consensus.Granted {
		m.taken[req.ID+"\x00"+req.Incarnation] = want
		if !changed {
			m.seen["repeated"]++
		}
		if want.Frozen == 0 && want.Tags[0].Share > req.Tags[0].InUse {
			m.seen["share raised"]++
		}
		if want.Frozen > 0 {
			m.seen["frozen "+string(want.FrozenBy)]++
		}
	}
}

// request returns mostly what a processor would send, and sometimes nonsense.
func (m *model) request() consensus.Request {
	if len(m.last) > 0 && m.rnd.IntN(10) == 0 {
		back := min(len(m.last), pick(m, 1, 1, 2, 5))
		return m.last[len(m.last)-back]
	}
	req := consensus.Request{
		Pool: m.pool, ID: pick(m, "a", "b", "c", "meta", "a b"), Incarnation: m.incarnation(),
		Lease: pick[time.Duration](m, 10_000, 10_000, 3_000, 3_333) * time.Millisecond,
		Nonce: pick(m, m.rnd.Uint64(), 1<<63, 1<<63+1),
	}
	if m.brink.ID != "" && m.rnd.IntN(2) == 0 {
		req.ID, req.Incarnation = m.brink.ID, pick(m, m.brink.Incarnation, req.Incarnation)
	}
	req.Seq = m.base + 1
	if last, ok := m.taken[req.ID+"\x00"+req.Incarnation]; ok && m.rnd.IntN(20) > 0 {
		req.LastSeq, req.LastNonce, req.LastTime, req.Revision = last.Seq, last.Nonce, last.Time, last.Revision
		req.Seq = last.Seq + pick[uint64](m, 1, 1, 1, 2, 3)
	}
	switch m.rnd.IntN(100) {
	case 0:
		req.LastSeq--
	case 1:
		req.LastNonce++
	case 2:
		req.Seq = max(req.Seq, 5) - pick[uint64](m, 1, 2)
	case 3:
		req.Revision += pick[uint64](m, 1, 100)
	case 4:
		req.Revision = max(req.Revision, m.base)
	case 5:
		req.LastTime -= 30_000_000
	case 7, 8, 9:
		req.LastTime = m.record.Clock - consensus.Removal(m.record.Lease).Microseconds()
	case 6:
		req.LastSeq, req.Seq = req.LastSeq+2, req.LastSeq+4
	}
	if req.LastSeq >= req.Seq {
		req.LastSeq = req.Seq - 1
	}
	req.Tags = m.tags()
	return req
}

// incarnation is mostly the one in use; now and then a processor starts anew.
func (m *model) incarnation() string {
	if m.rnd.IntN(50) == 0 {
		m.life++
	}
	return strconv.Itoa(max(m.life-pick(m, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), 0))
}

func (m *model) tags() []consensus.TagReport {
	var tags []consensus.TagReport
	names := []string{"", "x", "a 1 2", "é\n"}
	m.rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:pick(m, 1, 1, 2, 4)] {
		share := func() consensus.Share {
			return consensus.Share(pick(m, 0, 1, 1e9, m.rnd.Int64N(1e9), m.rnd.Int64N(3e8)))
		}
		tags = append(tags, consensus.TagReport{
			Tag: name, InUse: share() / 4, Wanted: share(), Demand: share(), PoolSize: pick(m, 0, 1, 2, 3, 3, 1_000_000),
		})
	}
	return tags
}

func (m *model) leave() {
	l := consensus.Leave{Pool: m.pool, ID: pick(m, "a", "b", "c"), Incarnation: m.incarnation(), Seq: m.base + 1}
	if m.rnd.IntN(3) == 0 && m.brink.ID != "" {
		l.ID, l.Incarnation = m.brink.ID, m.brink.Incarnation
	}
	if last, ok := m.taken[l.ID+"\x00"+l.Incarnation]; ok {
		l.Seq = last.Seq + pick[uint64](m, 0, 1, 1, 7)
	}
	want := m.record.Leave(&l, m.at)
	got, err := scriptedLeave.Run(m.t.Context(), m.client, []string{m.key}, leaveArgs(&l)...).Int64()
	require.NoError(m.t, err)
	require.Equal(m.t, want, got == 1, "%+v", l)
	m.seen[map[bool]string{true: "left", false: "not left"}[want]]++
}

// stored reads the record back from the server.
func (m *model) stored() consensus.Record {
	fields := m.client.HGetAll(m.t.Context(), m.key).Val()
	var r consensus.Record
	for name, value := range fields {
		part := strings.Split(value, " ")
		if name == metaField {
			require.Len(m.t, part, 10)
			r.Store, r.Revision = part[1], m.uint(part[2])
			r.Clock, r.Wall, r.JumpedUntil = m.int(part[3]), m.int(part[4]), m.int(part[5])
			r.FrozenUntil, r.FrozenSince = m.int(part[6]), m.int(part[7])
			if part[8] != noCause {
				r.FrozenBy = consensus.FreezeCause(part[8])
			}
			r.Lease = time.Duration(m.int(part[9])) * time.Millisecond
			continue
		}
		r.Rows = append(r.Rows, m.storedRow(name, value))
	}
	return sorted(r)
}

func (m *model) storedRow(name, value string) consensus.Row {
	id, incarnation, _ := strings.Cut(name, "\x00")
	part := strings.SplitN(value, " ", 9)
	w := consensus.Row{
		RowKey: consensus.RowKey{ID: id, Incarnation: incarnation},
		State:  consensus.RowState(m.int(part[0])), LastSeen: m.int(part[1]),
		Seq: m.uint(part[3]), Nonce: m.uint(part[4]), AckSeq: m.uint(part[5]), AckNonce: m.uint(part[6]),
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
