package storetest_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/storetest"
)

// A fault breaks one rule of a store that is right otherwise.
type fault struct {
	// found is a case that finds it.
	found   string
	request func(*driver.Request)
	answer  func(driver.Request, *driver.Answer)
	at      func(*driver.At)
	record  func(*driver.Record, driver.At)
	leave   func(*driver.Leave) bool
	sync    func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error)
	save    func(ctx context.Context, s *server, pool string, d driver.DocumentReport) (driver.Version, error)
	roster  func(*driver.RosterRow) // as it is shown to operators

	reservation func(*driver.Reserve)
	reserved    func(*driver.Reserved)
}

var faults = joined(joined(stepFaults, documentFaults), joined(tagBucketFaults, slotFaults))

func joined(a, b map[string]fault) map[string]fault {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// eachRow spoils the rows on record after every step.
func eachRow(spoil func(*driver.Row)) func(*driver.Record, driver.At) {
	return func(r *driver.Record, _ driver.At) {
		for i := range r.Rows {
			spoil(&r.Rows[i])
		}
	}
}

// rowsLost drops rows after every step.
func rowsLost(lost func(*driver.Record, driver.Row) bool) func(*driver.Record, driver.At) {
	return func(r *driver.Record, _ driver.At) {
		r.Rows = slices.DeleteFunc(r.Rows, func(w driver.Row) bool { return lost(r, w) })
	}
}

// granted spoils answers that are no refusals.
func granted(spoil func(driver.Request, *driver.Answer)) func(driver.Request, *driver.Answer) {
	return func(r driver.Request, ans *driver.Answer) {
		if ans.Status == driver.Granted {
			spoil(r, ans)
		}
	}
}

var stepFaults = map[string]fault{
	"facts are not believed": {
		found:   "a claim falls only once less is in use",
		request: func(r *driver.Request) { r.InUse = min(r.InUse, r.Wanted) },
	},
	"a claim falls when less is wanted": {found: "a claim falls only once less is in use", record: eachRow(func(w *driver.Row) { w.Claim = w.Answered })},
	"an answer is no claim":             {found: "an answered share is a claim before it is used", record: eachRow(func(w *driver.Row) { w.Claim = w.InUse })},
	"tombstones are missing": {
		found:  "a processor that left gets no answers, late packets included",
		record: rowsLost(func(_ *driver.Record, w driver.Row) bool { return w.State == driver.RowLeft }),
	},
	"replaced claims are dropped": {
		found:  "a newer incarnation replaces the older ones, whose claims stay",
		record: rowsLost(func(_ *driver.Record, w driver.Row) bool { return w.State == driver.RowReplaced }),
	},
	"cloned claims are dropped": {
		found: "another request under the same number is a clone's",
		record: eachRow(func(w *driver.Row) {
			if w.State == driver.RowCloned {
				w.Holding = driver.Holding{}
			}
		}),
	},
	"any answer may be remembered": {
		found: "a request that remembers another answer is a clone's",
		request: func(r *driver.Request) { // nonces count for nothing
			r.Nonce, r.LastNonce, r.Unanswered = 1, 1, nil
			for seq := r.LastSeq + 1; seq < r.Seq && len(r.Unanswered) < wire.MaxUnanswered; seq++ {
				r.Unanswered = append(r.Unanswered, driver.Ticket{Seq: seq, Nonce: 1})
			}
		},
		answer: func(req driver.Request, ans *driver.Answer) { ans.Nonce = req.Nonce },
	},
	"revisions seen are ignored": {found: "a revision from the future freezes", request: func(r *driver.Request) { r.Revision = 0 }},
	"lost rows are ignored": {
		found: "a lost row freezes",
		record: func(r *driver.Record, _ driver.At) {
			if r.FrozenBy == driver.FreezeLostRow {
				r.FrozenUntil, r.FrozenBy = 0, driver.FreezeNone
			}
		},
	},
	"deaths are ignored": {found: "what the dead have held is free at once", request: func(r *driver.Request) { r.Dead = nil }},
	"the dead leave no rows": {
		found: "late packets of the dead change nothing",
		record: rowsLost(func(_ *driver.Record, w driver.Row) bool {
			return w.State == driver.RowReplaced && w.Claim == 0
		}),
	},
	"any death is believed": {
		found: "the death of a clone frees nothing",
		sync: func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
			s.mu.Lock()
			if e := s.pools[req.Pool]; e != nil {
				for i, d := range req.Dead {
					for _, row := range e.rec.Rows {
						if row.ID == req.ID && row.Incarnation == d.Incarnation {
							req.Dead = slices.Clone(req.Dead)
							req.Dead[i].Last, req.Dead[i].Unanswered = driver.Ticket{Seq: row.Seq, Nonce: row.Nonce}, nil
						}
					}
				}
			}
			s.mu.Unlock()
			return s.Sync(ctx, req)
		},
	},
	"no freeze at all":              {found: "a revision from the future freezes", at: func(at *driver.At) { at.Identity = "" }},
	"the freeze is one lease short": {found: "a revision from the future freezes", at: func(at *driver.At) { at.Longest /= 3 }},
	"the clock is not clamped": {
		found:  "the clock follows the store's, and a leap counts as no time",
		record: func(r *driver.Record, at driver.At) { r.Clock, r.Wall = max(r.Clock, at.Now), at.Now },
	},
	"rows go after one lease": {
		found:  "a silent row goes after the removal time, not before",
		record: rowsLost(func(r *driver.Record, w driver.Row) bool { return r.Clock-w.LastSeen > r.Lease.Microseconds() }),
	},
	"a leave is ignored":   {found: "a leave frees the claim at once", leave: func(*driver.Leave) bool { return false }},
	"a stale leave counts": {found: "a leave older than the newest request is late", leave: func(l *driver.Leave) bool { l.Seq = 1 << 62; return true }},
	"the lease is everyone's own": {
		found:  "the first lease is the pool's",
		answer: granted(func(r driver.Request, ans *driver.Answer) { ans.Lease = r.Lease }),
	},
	"the roster is in the wrong order": {
		found: "the roster is sorted by the bytes of the ID",
		answer: func(_ driver.Request, ans *driver.Answer) {
			slices.SortFunc(ans.Roster, func(a, b driver.RosterRow) int {
				return strings.Compare(strings.ToLower(a.ID), strings.ToLower(b.ID))
			})
		},
	},
	"consensus is forgotten": {
		found:  "there is consensus when all report the number of live processors",
		answer: func(_ driver.Request, ans *driver.Answer) { ans.Agreed = false },
	},
	"shares are rounded": {found: "the smallest share counts", answer: func(_ driver.Request, ans *driver.Answer) { ans.Share -= ans.Share % 1000 }},
	"numbers are floats": {
		found:   "large numbers are kept exactly",
		request: func(r *driver.Request) { r.Nonce = uint64(float64(r.Nonce>>1)) << 1 },
		answer:  func(r driver.Request, ans *driver.Answer) { ans.Nonce = r.Nonce },
	},
	"names are forced to UTF-8": {
		found:   "long and unusual names are kept exactly",
		request: func(r *driver.Request) { r.ID = strings.ToValidUTF8(r.ID, "\uFFFD") },
	},
	"bad requests pass": {
		found: "a malformed request is a RequestError and changes nothing",
		sync: func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
			req.PoolSize = min(req.PoolSize, 1_000_000)
			return s.Sync(ctx, req)
		},
	},
	"slots are a little too close": {
		found:       "slots are a spacing apart, whoever asks",
		reservation: func(r *driver.Reserve) { r.Spacing = max(r.Spacing-10*time.Microsecond, wire.MinSpacing) },
		request:     func(r *driver.Request) { r.Spacing = min(r.Spacing, wire.MinSpacing) },
	},
	"the spacing of a request is its own": {
		found:   "the largest spacing that is named counts",
		request: func(r *driver.Request) { r.Spacing = min(r.Spacing, wire.MinSpacing) },
	},
	"slots that lie ahead are not heard of": {
		found:   "permits are held as far ahead as a processor says that its own lie",
		request: func(r *driver.Request) { r.Reach = 0 },
	},
	"slots are saved up": {
		found: "nothing is saved up",
		reserved: func(r *driver.Reserved) {
			if r.Count > 0 {
				r.Wait, r.Time = r.Wait+time.Millisecond, r.Time-2000
			}
		},
	},
	"what is given back is lost": {found: "the newest slots can be given back, once", reservation: func(r *driver.Reserve) { r.Return = 0 }},
	"slots can be given back twice": {
		found: "the newest slots can be given back, once",
		record: func(r *driver.Record, _ driver.At) {
			if r.Permits.Serial > 0 {
				r.Permits.Serial, r.Permits.Count = 1, wire.MaxSlots
			}
		},
		reservation: func(r *driver.Reserve) { r.Return = min(r.Return, 1) },
	},
	"shares are granted beside permits": {
		found:  "while permits are issued nobody is granted a share",
		answer: granted(func(r driver.Request, ans *driver.Answer) { ans.Share = max(ans.Share, r.InUse) }),
	},
	"claims do not count against permits": {
		found: "permits are spaced by what the processors leave",
		record: func(r *driver.Record, at driver.At) {
			if r.Permits.Issuing {
				eachRow(func(w *driver.Row) { w.Holding = driver.Holding{} })(r, at)
			}
		},
	},
	"shares grow as soon as issuing ends": {
		found: "no share grows before the last permit is void",
		record: func(r *driver.Record, _ driver.At) {
			if !r.Permits.Issuing {
				r.Permits.Last = 0
			}
		},
	},
	"low limits are divided": {
		found: "a limit too low to be divided is issued by itself",
		request: func(r *driver.Request) {
			if !r.Strict {
				r.Spacing = 0
			}
		},
	},
	"those who need shares are passed over": {
		found:   "a processor that can use nothing but shares keeps them",
		request: func(r *driver.Request) { r.Spacing = time.Hour },
	},
	"permits are not held after a freeze": {
		found:  "a revision from the future holds permits",
		record: func(r *driver.Record, _ driver.At) { r.Permits.Hold, r.Permits.Held = 0, r.FrozenUntil },
	},
	"revisions that a reservation has seen are ignored": {
		found:       "a revision from the future holds permits",
		reservation: func(r *driver.Reserve) { r.Revision = 0 },
	},
	"bad reservations pass": {
		found:       "a malformed reservation is a RequestError",
		reservation: func(r *driver.Reserve) { r.Ahead = min(max(r.Ahead, 0), wire.MaxAhead) },
	},
	"contexts are ignored": {
		found: "an ended context ends the call",
		sync: func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
			return s.Sync(context.WithoutCancel(ctx), req)
		},
	},
	"steps are not atomic": {found: "many processors at once never hold more than the whole, nor have one revision", sync: syncInTwo},
}

// syncInTwo reads the record, and writes it back with whatever happened between.
func syncInTwo(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
	if err := req.Validate(); err != nil {
		return driver.Answer{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Answer{}, err
	}
	s.mu.Lock()
	e := &entry{}
	if s.pools[req.Pool] != nil {
		e = s.pools[req.Pool].clone()
	}
	at := s.at(e)
	s.mu.Unlock()
	ans, _ := e.rec.Sync(&req, at)
	runtime.Gosched() // where there is one core, too
	s.mu.Lock()
	s.pools[req.Pool] = e
	s.mu.Unlock()
	return ans, nil
}

// A brokenStore is a server with a fault.
type brokenStore struct {
	*server
	fault

	mu sync.Mutex
}

func (b *brokenStore) Sync(ctx context.Context, req driver.Request) (driver.Answer, error) {
	if b.sync != nil {
		return b.sync(ctx, b.server, req)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	sent := req
	if b.request != nil && req.Validate() == nil {
		req.Documents = slices.Clone(req.Documents)
		b.request(&req)
	}
	ans, err := b.server.Sync(ctx, req)
	if b.answer != nil {
		b.answer(sent, &ans)
	}
	b.damage(req.Pool)
	return ans, err
}

func (b *brokenStore) Reserve(ctx context.Context, req driver.Reserve) (driver.Reserved, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reservation != nil {
		b.reservation(&req)
	}
	res, err := b.server.Reserve(ctx, req)
	if b.reserved != nil {
		b.reserved(&res)
	}
	b.damage(req.Pool)
	return res, err
}

func (b *brokenStore) Leave(ctx context.Context, l driver.Leave) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leave != nil && l.Validate() == nil && !b.leave(&l) {
		return ctx.Err()
	}
	err := b.server.Leave(ctx, l)
	b.damage(l.Pool)
	return err
}

func (b *brokenStore) Save(ctx context.Context, pool string, d driver.DocumentReport) (driver.Version, error) {
	if b.save != nil && d.ValidateSave(pool) == nil {
		return b.save(ctx, b.server, pool, d)
	}
	return b.server.Save(ctx, pool, d)
}

func (b *brokenStore) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	docs, roster, err := b.server.Load(ctx, pool)
	for i := range roster {
		if b.roster != nil {
			b.roster(&roster[i])
		}
	}
	return docs, roster, err
}

func (b *brokenStore) damage(pool string) {
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	if e := b.pools[pool]; e != nil && b.record != nil {
		b.record(&e.rec, b.server.at(e))
	}
}

const faultVariable = "STORETEST_FAULT"

// TestTheSuiteFindsFaults runs this program again for each fault: a suite that
// fails would fail this test, too.
func TestTheSuiteFindsFaults(t *testing.T) {
	testkit.SkipShort(t, "it runs the suite on each faulty store")
	if name, ok := os.LookupEnv(faultVariable); ok {
		f, known := faults[name]
		require.True(t, known, name)
		s := newServer()
		s.knowsNew, s.fault = true, f.at // pools that are open at once save time
		h := s.harness()
		h.New = func(testing.TB) driver.Store { return &brokenStore{server: s, fault: f} }
		storetest.Run(t, h)
		return
	}
	free := make(chan struct{}, 6) // most of the time nothing is computed
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			t.Run(name, func(t *testing.T) {
				requireFound(t, name, "rules/"+strings.ReplaceAll(faults[name].found, " ", "_"))
			})
		})
	}
}

// requireFound requires that a part of the suite fails on a faulty store, and not
// for want of such a part.
func requireFound(t *testing.T, fault, part string) {
	t.Helper()
	var pattern []string
	for _, name := range append([]string{"TestTheSuiteFindsFaults"}, strings.Split(part, "/")...) {
		pattern = append(pattern, "^"+regexp.QuoteMeta(name)+"$")
	}
	for range 10 { // a fault that needs two processors at the same moment may hide
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", strings.Join(pattern, "/"))
		cmd.Env = append(os.Environ(), faultVariable+"="+fault)
		out, err := cmd.CombinedOutput()
		require.Contains(t, string(out), "=== RUN   TestTheSuiteFindsFaults/"+part, "%s", out)
		if err != nil {
			require.Contains(t, string(out), "--- FAIL: TestTheSuiteFindsFaults/"+part, "%s", out)
			return
		}
	}
	require.Fail(t, part+" did not find it")
}
