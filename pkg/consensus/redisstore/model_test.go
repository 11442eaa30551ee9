package redisstore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// scriptedLua stands in for server.lua: what the scripts learn of the server is
// what the test has put into a hash.
const scriptedLua = `
local function server_time() return tonumber(redis.call('HGET', 'env', 'now')) end
local function server_info() return '' end
local function eviction_policy() return '' end
local function server_identity() return redis.call('HGET', 'env', 'identity') end
local function known_new(_, _, lasting) return tonumber(redis.call('HGET', 'env', 'remembers')) >= lasting end
`

var (
	scriptedSync    = redis.NewScript(scriptedLua + permitLua + tagClaimsLua + recordLua + issueLua + documentLua + tagBucketsLua + tagSlotsLua + syncLua)
	scriptedLeave   = redis.NewScript(scriptedLua + permitLua + tagClaimsLua + recordLua + leaveLua)
	scriptedSave    = redis.NewScript(scriptedLua + permitLua + tagClaimsLua + recordLua + documentLua + saveLua)
	scriptedSpent   = redis.NewScript(scriptedLua + permitLua + tagClaimsLua + recordLua + issueLua + documentLua + tagBucketsLua + setSpentLua)
	scriptedReserve = redis.NewScript(strings.NewReplacer(
		"redis.call('TIME')", "{ 0, redis.call('HGET', 'env', 'now') }",
		"redis.pcall('INFO', 'server')", `'run_id:' .. redis.call('HGET', 'env', 'identity') .. '\r'`,
	).Replace(reserveLua))
)

// TestScriptsDoWhatRecordDoes makes random steps on a driver.Record and with
// the scripts, with the same times and identities, and compares every answer and
// everything on record after each step.
func TestScriptsDoWhatRecordDoes(t *testing.T) {
	server := testenv.Redis(t)
	c := client(t, ClientOptions(server.Addr()))
	seen := map[string]int{}
	for seed := range uint64(testkit.Fewer(60)) {
		m := newModel(t, c, seed)
		for range 250 {
			m.step()
		}
		for k, n := range m.seen {
			seen[k] += n
		}
	}
	t.Logf("steps by outcome: %v", seen)
	if testkit.Race {
		return // not all of them come in so few
	}
	for _, outcome := range []string{
		"granted", "late", "replaced", "cloned", "removed", "behind", "repeated", "left", "not left", "share raised",
		"dead", "death of a clone", "dead again", "frozen new_record", "frozen store_identity", "frozen older_record", "frozen lost_row",
		"changed", "given back", "not taken", "began anew", "beginning forgotten", "saved", "conflict", "too many", "no pool",
		"issuing", "issuing ended", "slots", "fewer slots", "no slots", "held", "given back", "shares and slots",
		"slots granted", "slots above the grant", "slots frozen", "slots beside facts", "slots outdated",
		"damaged", "drawn", "reserved", "lack 1", "lack 2", "lack 3", "lack 4", "lack 5", "window began", "back", "spent set", "no such window",
	} {
		require.Positive(t, seen[outcome], "no step ended %s", outcome)
	}
}

// TestScriptsTakeTheNextLease: who joins a pool in which nobody is live brings the lease.
func TestScriptsTakeTheNextLease(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	idle := driver.Request{ID: "a", Incarnation: "1", Seq: 1, Lease: 4 * time.Second, Report: driver.Report{}}
	for past, want := range []time.Duration{4 * time.Second, 3 * time.Second} {
		m := newModel(t, c, uint64(past))
		require.NoError(t, c.Del(t.Context(), m.key).Err())
		m.at.Remembers = math.MaxInt64
		m.sync(idle)
		keeper := idle
		keeper.ID = "b"
		for range 6 {
			m.at.Now += 1_000_000
			m.sync(keeper)
			keeper.Seq, keeper.LastSeq = keeper.Seq+1, keeper.Seq
		}
		m.leave(driver.Leave{ID: "b", Incarnation: "1", Seq: keeper.Seq, LastSeq: keeper.LastSeq})
		m.at.Now += int64(past) // then a is removed, too
		next := idle
		next.ID, next.Lease = "c", 3*time.Second
		m.sync(next)
		require.Equal(t, want, m.record.Lease)
	}
}

// TestScriptsCountNoRemovedRow: rows that a step removes are not live when it decides between shares and permits. Two that have left
// are rows, too, so that the live ones have to be counted.
func TestScriptsCountNoRemovedRow(t *testing.T) {
	m := newModel(t, client(t, ClientOptions(testenv.Redis(t).Addr())), 1)
	m.at.Remembers = math.MaxInt64
	request := func(id string, seq uint64, spacing time.Duration) driver.Request {
		return driver.Request{ID: id, Incarnation: "1", Seq: seq, LastSeq: seq - 1, Lease: 4 * time.Second, Spacing: spacing}
	}
	for _, id := range []string{"silent", "silent too"} {
		m.sync(request(id, 1, time.Millisecond))
	}
	for seq := range uint64(6) {
		m.at.Now += 1_000_000
		m.sync(request("live", seq+1, time.Millisecond))
	}
	for _, id := range []string{"left", "left too"} {
		m.sync(request(id, 1, time.Millisecond))
		m.leave(driver.Leave{ID: id, Incarnation: "1", Seq: 2, LastSeq: 1})
	}
	require.Len(t, m.record.Rows, 5)
	m.at.Now += 1_000_000
	m.sync(request("live", 7, 160*time.Millisecond)) // too long for three, not for one
	require.Len(t, m.record.Rows, 3)
	require.False(t, m.record.Permits.Issuing)
}

// model holds one pool twice.
type model struct {
	t      testing.TB
	rnd    *rand.Rand
	client redis.UniversalClient
	store  *Store
	pool   string
	key    string
	record driver.Record
	at     driver.At
	base   uint64 // of sequence numbers and revisions: where 64 bits matter
	last   []driver.Request
	taken  map[string]driver.Answer
	sent   map[string][]driver.Ticket // all that was sent, by row
	newest map[string]driver.Ticket   // what a record that was behind named
	old    *driver.Record
	oldRaw map[string]string

	oldTagBuckets [3]map[string]string
	seen          map[string]int
	life          int
	brink         driver.RowKey // the row that is about to be removed

	kind     int               // of spacing
	reserved []driver.Reserved // the newest last
}

func newModel(t testing.TB, c redis.UniversalClient, seed uint64) *model {
	t.Helper()
	m := &model{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), client: c, store: New(c), pool: fmt.Sprint("model ", seed),
		at:    driver.At{Now: 1_763_718_400_123_456, Identity: "life0", Longest: driver.MaxLease},
		taken: map[string]driver.Answer{}, sent: map[string][]driver.Ticket{}, newest: map[string]driver.Ticket{}, seen: map[string]int{},
	}
	m.base = []uint64{0, 9_999_999_990, 1<<53 - 5, 8_999_999_999_999_999_990, 1<<63 - 1_000_000}[seed%5]
	m.key, _ = m.store.keys(m.pool)
	m.kind = int(seed / 5)
	return m
}

// remembers is how long a server must remember for a new pool to be known as such.
func remembers(longest time.Duration) time.Duration {
	if longest == 0 {
		longest = driver.MaxLease
	}
	return wire.Removal(longest)
}

func pick[T any](m *model, of ...T) T { return of[m.rnd.IntN(len(of))] }

// step lets some time pass, or something go wrong with the server, and makes one step.
func (m *model) step() {
	m.at.Now += pick[int64](m, 0, 1, 1000, 100_000, 1_000_000, 1_000_000, 2_500_000, 2_500_001, 750_000)
	enough := remembers(m.at.Longest)
	m.at.Remembers = pick(m, 0, math.MaxInt64, enough, enough-time.Microsecond, enough+wire.MaxOutlasts, enough+wire.MaxOutlasts-time.Microsecond)
	ctx := m.t.Context()
	switch m.rnd.IntN(200) {
	case 0:
		m.at.Now += pick[int64](m, 20_000_000, 86_400_000_000, -5_000_000, -1)
	case 1:
		m.at.Identity = pick(m, "life0", "life1", "life2")
	case 2:
		m.record = driver.Record{}
		require.NoError(m.t, m.client.Del(ctx, m.key).Err()) // and not the tag buckets
	case 3:
		m.keep()
	case 4:
		m.rollBack()
	case 5:
		m.at.Longest = pick(m, 5*time.Second, driver.MaxLease)
	case 6, 7:
		m.damage()
	}
	m.brink = driver.RowKey{}
	if m.rnd.IntN(8) == 0 {
		m.toTheBrink()
	}
	switch n := m.rnd.IntN(17); {
	case n == 16:
		m.setSpent()
	case n < 2:
		m.leave(m.leaving())
	case n < 3:
		m.save(m.saving())
	case n < 7:
		m.reserve(m.reservation())
	default:
		m.sync(m.request())
	}
}

// setEnvironment tells the scripts what the test knows of the server.
func (m *model) setEnvironment() {
	require.NoError(m.t, m.client.HSet(m.t.Context(), "env", "now", m.at.Now, "identity", m.at.Identity, "remembers", m.at.Remembers.Microseconds()).Err())
}

// toTheBrink sets the time to when a row is just about to be removed.
func (m *model) toTheBrink() {
	removal := wire.Removal(m.record.Lease).Microseconds()
	for _, row := range m.record.Rows {
		left := row.LastSeen + removal - m.record.Clock
		if 0 <= left && left <= wire.Clamp(m.record.Lease).Microseconds() {
			m.at.Now = m.record.Wall + left + pick[int64](m, 0, 1)
			m.brink = row.RowKey
			return
		}
	}
}

func (m *model) keep() {
	old := m.record
	old.Rows, old.Documents = slices.Clone(old.Rows), slices.Clone(old.Documents)
	m.old, m.oldRaw = &old, m.client.HGetAll(m.t.Context(), m.key).Val()
	for i, key := range []string{tagBucketsKey(m.key), namesKey(m.key), sketchKey(m.key)} {
		m.oldTagBuckets[i] = m.client.HGetAll(m.t.Context(), key).Val()
	}
}

func (m *model) rollBack() {
	if m.old == nil {
		return
	}
	m.record = *m.old
	m.record.Rows, m.record.Documents = slices.Clone(m.old.Rows), slices.Clone(m.old.Documents)
	require.NoError(m.t, m.client.Del(m.t.Context(), m.key, tagBucketsKey(m.key), namesKey(m.key), sketchKey(m.key)).Err())
	for i, key := range []string{tagBucketsKey(m.key), namesKey(m.key), sketchKey(m.key)} {
		if len(m.oldTagBuckets[i]) > 0 {
			require.NoError(m.t, m.client.HSet(m.t.Context(), key, m.oldTagBuckets[i]).Err())
		}
	}
	if len(m.oldRaw) > 0 {
		require.NoError(m.t, m.client.HSet(m.t.Context(), m.key, m.oldRaw).Err())
	}
}

func (m *model) sync(req driver.Request) {
	m.setEnvironment()
	before := m.record
	before.Rows, before.Documents = slices.Clone(before.Rows), slices.Clone(before.Documents)
	issuing := m.record.Permits.Issuing
	want, changed := m.record.Sync(&req, m.at)
	reply, err := scriptedSync.Run(m.t.Context(), m.client, syncKeys(m.key, "marker", &req), syncArgs(&req, m.at.Longest, false, "", 0)...).Result()
	require.NoError(m.t, err)
	got, _, err := parseSync(reply, &req)
	require.NoError(m.t, err)
	require.Equal(m.t, want, got, "answer to %+v", req)
	m.requireCut(reply)

	require.Equal(m.t, sorted(m.record), m.stored(), "on record after %+v", req)
	switch {
	case want.Issuing:
		m.seen["issuing"]++
	case issuing:
		m.seen["issuing ended"]++
	}

	key := req.ID + "\x00" + req.Incarnation
	m.sent[key] = append(m.sent[key], driver.Ticket{Seq: req.Seq, Nonce: req.Nonce})
	m.last = append(m.last, req)
	m.seen[want.Status.String()]++
	m.newest[key] = want.Newest
	m.noteTagSlots(&before, &req, &want)
	if want.Status == driver.Granted {
		m.taken[key] = want
		m.noteDocuments(&before, &req)
		m.noteDraws(&before, &req, want.Draws)
		m.noteDeaths(before.Rows, &req)
		if !changed {
			m.seen["repeated"]++
		}
		if want.Frozen == 0 && want.Share > req.InUse {
			m.seen["share raised"]++
		}
		if want.Frozen > 0 {
			m.seen["frozen "+string(want.FrozenBy)]++
		}
	}
}

// request returns mostly what a processor would send, and sometimes nonsense.
func (m *model) request() driver.Request {
	if len(m.last) > 0 && m.rnd.IntN(10) == 0 {
		back := min(len(m.last), pick(m, 1, 1, 2, 5))
		return m.last[len(m.last)-back]
	}
	req := driver.Request{
		Pool: m.pool, ID: pick(m, "a", "b", "c", "meta", "a b"), Incarnation: m.incarnation(),
		Lease: pick(m, 10*time.Second, 10*time.Second, 3*time.Second, 3333*time.Millisecond),
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
		req.LastTime = m.record.Clock - wire.Removal(m.record.Lease).Microseconds()
	case 6:
		req.LastSeq, req.Seq = req.LastSeq+2, req.LastSeq+4
	}
	if req.LastSeq >= req.Seq {
		req.LastSeq = req.Seq - 1
	}
	req.Unanswered = m.unanswered(req.ID, req.Incarnation, req.LastSeq, req.Seq)
	if t := m.newest[req.ID+"\x00"+req.Incarnation]; t.Seq < req.LastSeq && m.rnd.IntN(4) > 0 {
		req.Recalled = t
	}
	req.Report, req.Documents, req.Dead = m.report(), m.documents(), m.deaths(&req)
	req.Draws = m.draws()
	if len(req.Documents) > 0 && m.rnd.IntN(2) == 0 {
		req.TagSlotsBy = pick(m, req.Documents...).Name
	}
	// Most pools keep to one spacing, or have none; and some processors can use no permits.
	req.Spacing = m.spacing()
	req.Strict = req.Spacing > 0 && m.rnd.IntN(40) == 0
	req.Outlasts = pick[time.Duration](m, 0, wire.MaxOutlasts)
	req.Reach = pick(m, 0, 0, 0, time.Nanosecond, 1_234_567, 20*time.Second, wire.MaxReach)
	return req
}

// deaths names, now and then, other incarnations of the sender's ID, with mostly what they have sent.
func (m *model) deaths(req *driver.Request) (dead []driver.Death) {
	if m.rnd.IntN(12) > 0 {
		return nil
	}
	for life := max(m.life-3, 0); life <= m.life && len(dead) < wire.MaxDead; life++ {
		d := driver.Death{Incarnation: strconv.Itoa(life)}
		if d.Incarnation == req.Incarnation || m.rnd.IntN(4) == 0 {
			continue
		}
		if last, ok := m.taken[req.ID+"\x00"+d.Incarnation]; ok && m.rnd.IntN(8) > 0 {
			d.Last = driver.Ticket{Seq: last.Seq, Nonce: last.Nonce}
		}
		d.Unanswered = m.unanswered(req.ID, d.Incarnation, d.Last.Seq, 1<<63-1)
		dead = append(dead, d)
	}
	return dead
}

// noteDeaths counts what became of the rows of the dead.
func (m *model) noteDeaths(before []driver.Row, req *driver.Request) {
	state := func(rows []driver.Row, incarnation string) (driver.RowState, bool, driver.Share) {
		for _, row := range rows {
			if row.ID == req.ID && row.Incarnation == incarnation {
				return row.State, true, row.Claim
			}
		}
		return 0, false, 0
	}
	for _, d := range req.Dead {
		was, ok, claim := state(before, d.Incarnation)
		is, stays, _ := state(m.record.Rows, d.Incarnation)
		switch {
		case !ok || !stays:
		case is == driver.RowCloned && was != is:
			m.seen["death of a clone"]++
		case is == driver.RowReplaced && claim > 0:
			m.seen["dead"]++
		case is == driver.RowReplaced:
			m.seen["dead again"]++
		}
	}
}

// unanswered lists mostly what was sent between two numbers, the newest of it, and
// sometimes less.
func (m *model) unanswered(id, incarnation string, after, before uint64) (tickets []driver.Ticket) {
	for _, t := range m.sent[id+"\x00"+incarnation] {
		if t.Seq <= after || t.Seq >= before || m.rnd.IntN(10) == 0 {
			continue
		}
		after = t.Seq
		if tickets = append(tickets, t); len(tickets) > wire.MaxUnanswered {
			tickets = tickets[1:]
		}
	}
	return tickets
}

// incarnation is mostly the one in use; now and then a processor starts again.
func (m *model) incarnation() string {
	if m.rnd.IntN(50) == 0 {
		m.life++
	}
	return strconv.Itoa(max(m.life-pick(m, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), 0))
}

func (m *model) report() driver.Report {
	share := func() driver.Share {
		return driver.Share(pick(m, 0, 1, 1e9, m.rnd.Int64N(1e9), m.rnd.Int64N(3e8)))
	}
	return driver.Report{
		InUse: share() / 4, Wanted: share(), Demand: share(), PoolSize: pick(m, 0, 1, 2, 3, 3, 1_000_000),
		Note: pick(m, "", "", "a", " 1 2 3 ", strings.Repeat("n ", 64), "%s\xff\n"),
		Busy: pick(m, "", "", "b", "\x00 \xff", strings.Repeat("\x00b", wire.MaxBusyBytes/2)), TagSlots: m.tagSlots(),
	}
}

// leaving returns a leave of a processor that is there, or not.
func (m *model) leaving() driver.Leave {
	l := driver.Leave{Pool: m.pool, ID: pick(m, "a", "b", "c"), Incarnation: m.incarnation(), Seq: m.base + 1}
	if m.brink.ID != "" {
		l.ID, l.Incarnation = m.brink.ID, m.brink.Incarnation
	}
	if last, ok := m.taken[l.ID+"\x00"+l.Incarnation]; ok {
		l.Seq = last.Seq + pick[uint64](m, 0, 1, 1, 7)
		if l.Seq > last.Seq && m.rnd.IntN(8) > 0 {
			l.LastSeq, l.LastNonce = last.Seq, last.Nonce
		}
	}
	l.Unanswered = m.unanswered(l.ID, l.Incarnation, l.LastSeq, l.Seq)
	return l
}

func (m *model) leave(l driver.Leave) {
	m.setEnvironment()
	want := m.record.Leave(&l, m.at)
	got, err := scriptedLeave.Run(m.t.Context(), m.client, []string{m.key}, leaveArgs(&l)...).Int64()
	require.NoError(m.t, err)
	require.Equal(m.t, want, got == 1, "%+v", l)
	require.Equal(m.t, sorted(m.record), m.stored(), "on record after %+v", l)
	m.seen[map[bool]string{true: "left", false: "not left"}[want]]++
}
