package driver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// An issue is a pool that issues permits, under faults of the store and of the network,
// with a judge who knows every slot that somebody may use.
type issue struct {
	*trial
	rng     *rand.Rand
	spacing time.Duration
	ahead   int
	keeper  *actor // strict, and always there
	seen    uint64
	slots   []judged
	// furthest is the last slot of all; the keeper tells it for those who reserve.
	furthest time.Duration
	epoch    int
	copies   []func()
	unread   []unread
	mine     []owned   // reservations that can still be given back
	late     []Reserve // give-backs that have been sent, and may arrive again
	count    [6]int    // granted, refused, frozen, given back, forgotten, read back late
	faults   [len(issueFaults)]int
}

// A judged slot is one that somebody may use: on the store's clock, and in true time.
type judged struct {
	epoch    int
	at       int64
	trueTime time.Duration
	spacing  time.Duration
}

// An owned reservation is one of which the slots from first on are its owner's.
type owned struct {
	last  int64
	slots []judged
}

// An unread reservation was written to a Deferred store and not read back yet.
type unread struct {
	req      Reserve
	revision uint64
	identity string
	epoch    int
}

func newIssue(tb testing.TB, seed uint64) *issue {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 10))
	is := &issue{trial: newTrial(tb), rng: rng, spacing: []time.Duration{time.Millisecond, 333_333_334, 20_000_001, 2 * time.Second}[rng.IntN(4)]}
	is.ahead = []int{0, 0, 1, 5, 20}[rng.IntN(5)]
	is.at.Deferred = rng.IntN(2) == 0
	is.storeRate = 1 + 0.0833*(2*rng.Float64()-1)
	is.join()
	return is
}

// join makes a strict processor, and lets it sync.
func (is *issue) join() {
	is.keeper = is.actor(fmt.Sprint("keeper ", len(is.actors)))
	is.keeper.spacing, is.keeper.strict, is.keeper.furthest = is.spacing, true, is.furthest
	is.keeper.sync()
}

// pass lets time pass. The keeper syncs once a second, or the pool's clock would stand.
func (is *issue) pass(d time.Duration) {
	for ; d > 0; d -= time.Second {
		is.wait(min(d, time.Second))
		if ans := is.keeper.sync(); ans.Status != Granted {
			is.join()
		}
		is.seen = max(is.seen, is.keeper.revision)
	}
}

// reserve reserves as a client does whose answer may be lost.
func (is *issue) reserve() {
	req := Reserve{Pool: "pool", Count: 1 + is.rng.IntN(4), Spacing: is.spacing, Ahead: is.ahead * is.rng.IntN(2), Revision: is.seen, Lease: longest}
	if n := len(is.mine); n > 0 && is.rng.IntN(4) == 0 {
		is.cancel(&req, n-1)
	}
	is.send(req)
}

// cancel gives some of a reservation back with a request: they are not used from now on,
// whatever becomes of it.
func (is *issue) cancel(req *Reserve, i int) {
	o := &is.mine[i]
	k := 1 + is.rng.IntN(len(o.slots))
	gone := o.slots[len(o.slots)-k:]
	is.slots = slices.DeleteFunc(is.slots, func(s judged) bool { return slices.Contains(gone, s) })
	req.Return, req.Unused = o.last, k
	is.mine = is.mine[:i]
	again := *req
	again.Count = 0
	is.late = append(is.late, again)
}

func (is *issue) send(req Reserve) {
	require.NoError(is.t, req.Validate())
	serial := is.record.Permits.Serial
	res, changed := is.record.Reserve(&req, is.moment())
	if changed {
		is.written = is.storeTime
	}
	if req.Return != 0 && uint64(req.Return) == serial && is.record.Permits.Serial != serial {
		is.count[3]++
	}
	if !is.at.Deferred || !changed {
		is.take(req, res)
		return
	}
	is.unread = append(is.unread, unread{req, res.Revision, is.at.Identity, is.epoch})
	for range is.rng.IntN(3) {
		if is.rng.IntN(3) == 0 {
			is.reserve() // somebody else, before it is read back
			is.count[5]++
		}
	}
	is.readBack()
}

// readBack reads back what is newest, or, sometimes, nothing.
func (is *issue) readBack() {
	if len(is.unread) == 0 {
		return
	}
	u := is.unread[len(is.unread)-1]
	is.unread = is.unread[:len(is.unread)-1]
	if u.identity != is.at.Identity || u.epoch != is.epoch {
		return // the slots are lost
	}
	at := is.moment()
	at.Now = is.written
	is.take(u.req, is.record.ReadReservation(&u.req, u.revision, at))
}

// take takes an answer, or loses it.
func (is *issue) take(req Reserve, res Reserved) {
	if is.rng.IntN(10) == 0 {
		return
	}
	is.seen = max(is.seen, res.Revision)
	if res.Frozen > 0 {
		is.count[2]++
		require.Zero(is.t, res.Count)
	}
	if res.Count == 0 {
		is.count[1]++
		require.Positive(is.t, res.Retry)
		return
	}
	is.count[0] += res.Count
	require.LessOrEqual(is.t, res.Count, req.Count)
	require.GreaterOrEqual(is.t, res.Wait, time.Duration(0), "before the time of its step")
	var slots []judged
	for i := range res.Count {
		wait := res.Wait + time.Duration(i)*res.Spacing
		require.LessOrEqual(is.t, wait, time.Duration(req.Ahead)*is.spacing, "too far ahead")
		slots = append(slots, judged{epoch: is.epoch, at: res.Time*1000 + int64(wait), trueTime: is.now + wait, spacing: res.Spacing})
	}
	is.slots = append(is.slots, slots...)
	is.furthest = max(is.furthest, slots[len(slots)-1].trueTime)
	is.keeper.furthest = is.furthest
	if res.Last != 0 {
		is.mine = append(is.mine, owned{res.Last, slots})
	}
}

// issueFaults are what happens to the store.
var issueFaults = [...]string{
	"clock steps by hours", "clock steps back by less than a clamp", "clock steps on by less than a clamp",
	"all is lost", "failover to an older copy", "older copy, which only its revision tells",
}

// fault lets one of them happen.
func (is *issue) fault() {
	kind := is.rng.IntN(len(issueFaults))
	copies := len(is.copies)
	if kind >= 4 && copies == 0 {
		return
	}
	is.faults[kind]++
	switch kind {
	case 0:
		is.storeTime += micros(time.Duration(is.rng.Int64N(int64(6*time.Hour))) - 3*time.Hour)
	case 1:
		is.storeTime -= is.rng.Int64N(micros(wire.Clamp(longest)))
	case 2:
		is.storeTime += is.rng.Int64N(micros(wire.Clamp(longest)))
	case 3:
		is.forgets(is.wipe, true)
	case 4:
		is.forgets(is.copies[copies-1], true)
	case 5:
		is.forgets(is.copies[copies-1], false)
		is.reserve() // before the revision has come up to what was seen: what nobody notices is not promised
	}
}

func (is *issue) forgets(how func(), another bool) {
	how()
	is.copies, is.mine = nil, nil
	if !another && is.seen <= is.record.Revision {
		is.unread = nil
		return // nothing that anybody has heard of is forgotten
	}
	is.count[4]++
	is.epoch++
	if another {
		is.at.Identity += "'"
	}
}

// run plays until so many slots were granted.
func (is *issue) run(slots int) {
	for is.count[0] < slots {
		switch n := is.rng.IntN(1000); {
		case n < 4:
			is.fault()
		case n < 10:
			is.copies = append(is.copies, is.snapshot())
		case n < 20 && len(is.late) > 0:
			req := is.late[is.rng.IntN(len(is.late))]
			is.record.Reserve(&req, is.moment())
			is.written = is.storeTime
		case n < 500:
			is.pass(time.Duration(is.rng.Int64N(int64(is.spacing) * 2)))
		default:
			is.reserve()
		}
		if is.record.FrozenUntil > is.record.Clock && is.rng.IntN(10) == 0 {
			is.pass(5 * time.Second)
		}
		// What is older than this cannot be restored.
		if len(is.copies) > 0 && is.rng.IntN(100) == 0 {
			is.copies = nil
		}
	}
}

// violations compares every slot with the one before it: on the store's clock while it
// remembers, and in true time with those before it forgot.
func (is *issue) violations() (n int) {
	slices.SortStableFunc(is.slots, func(a, b judged) int {
		if a.epoch != b.epoch {
			return a.epoch - b.epoch
		}
		return int(a.at - b.at)
	})
	latest := time.Duration(-1 << 62)
	for i, s := range is.slots {
		if i == 0 {
			continue
		}
		before := is.slots[i-1]
		if before.epoch == s.epoch {
			if s.at-before.at < int64(s.spacing) {
				n++
			}
			continue
		}
		for _, b := range is.slots[:i] {
			latest = max(latest, b.trueTime)
		}
		first := s.trueTime
		for _, o := range is.slots[i:] {
			if o.epoch == s.epoch {
				first = min(first, o.trueTime)
			}
		}
		if first-latest < is.spacing {
			n++
		}
	}
	return n
}
