package natsstore

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// conflicted returns a step of pool p that loses so often to another one, which begins after it has read.
func conflicted(t *testing.T, rival *Store, times int) *step {
	t.Helper()
	next := request("p", rand.Text(), 1)
	return &step{pool: "p", mayCreate: true, apply: func(rec *driver.Record, at driver.At) bool {
		if times--; times >= 0 {
			next = follow(next, mustSync(t, rival, next))
		}
		req := request("p", "a", 1)
		_, changed := rec.Sync(&req, at)
		return changed
	}}
}

// However often a step has to be tried, it asks for the stream's information twice: before the first try, and after the last.
func TestRetriesDoNotAskForTheStream(t *testing.T) {
	on := current(t)
	s, rival := open(t, on), open(t, on)
	mustSync(t, rival, request("p", "b", 1))
	watcher := connect(t, on.urls)
	asked, err := watcher.SubscribeSync(s.api("STREAM.INFO"))
	require.NoError(t, err)
	require.NoError(t, watcher.Flush())
	require.NoError(t, s.carryOut(t.Context(), conflicted(t, rival, 5)))
	require.NoError(t, s.nc.Flush())
	require.NoError(t, rival.nc.Flush())
	require.NoError(t, watcher.Flush())
	n, _, err := asked.Pending()
	require.NoError(t, err)
	require.Equal(t, 5+2, n, "the rival asks for it once in each of its five steps")
}

// A bucket that was made again after the first try voids the answer.
func TestBucketMadeAnewBetweenTries(t *testing.T) {
	on := current(t)
	s, rival := open(t, on), open(t, on)
	mustSync(t, rival, request("p", "b", 1))
	st := conflicted(t, rival, 1)
	lose, tries := st.apply, 0
	st.apply = func(rec *driver.Record, at driver.At) bool {
		if tries++; tries == 2 {
			deleteBucket(t, s)
			require.ErrorIs(t, line{s, s.nc}.create(t.Context()), errMade)
			for range 5 { // until the entry has a higher number than the one that the step has read
				mustSync(t, rival, request("p", rand.Text(), 1))
			}
		}
		return lose(rec, at)
	}
	err := s.carryOut(t.Context(), st)
	require.Error(t, err)
	require.NotErrorAs(t, err, new(passing))
}

// A server that refuses a write for one that it does not show, such as a leader that was cut off from its followers, is asked for the
// stream's information by the next try, and counts as one that does not serve: then another is looked for.
func TestALeaderThatWasCutOffIsLeft(t *testing.T) {
	on := current(t)
	s := open(t, on)
	mustSync(t, s, request("p", "a", 1))
	l := line{s, s.nc}
	info, e, err := l.read(t.Context(), s.prefix+keyOf("p"), nil)
	require.NoError(t, err)
	st := &step{pool: "p", mayCreate: true, info: info, on: s.nc, lost: e.seq, apply: func(*driver.Record, driver.At) bool {
		require.Fail(t, "the record is an old one")
		return false
	}}
	err = l.try(t.Context(), st)
	require.ErrorIs(t, err, errBehind.error)
	require.ErrorIs(t, err, driver.ErrContention)
	require.Nil(t, st.info)
	s.lines.outcome(l, noSuccess("p", 2, errConflict))
	require.True(t, s.lines.failing.IsZero(), "others wrote")
	s.lines.outcome(l, noSuccess("p", 2, errBehind))
	require.False(t, s.lines.failing.IsZero())
}

// What one server has said of the stream is no basis for a write at another.
func TestAStepOnAnotherServerAsksForTheStream(t *testing.T) {
	on := current(t)
	s, tries := open(t, on), 0
	mustSync(t, s, request("p", "a", 1))
	s.tried = func(n int) { tries = n }
	require.NoError(t, s.carryOut(t.Context(), &step{
		pool: "p", mayCreate: true, info: &streamInfo{}, on: open(t, on).nc, lost: 1 << 40,
		apply: func(*driver.Record, driver.At) bool { return false },
	}))
	require.Equal(t, 1, tries)
}

// Who joins stops competing after a quarter of its time, and who holds a share after three quarters.
func TestWhoJoinsGivesWay(t *testing.T) {
	on := current(t)
	s, rival := open(t, on), open(t, on)
	mustSync(t, rival, request("p", "b", 1))
	took := func(req driver.Request) time.Duration {
		st := conflicted(t, rival, 1<<30)
		lose := st.apply
		st.apply = func(rec *driver.Record, at driver.At) bool {
			time.Sleep(10 * time.Millisecond) // a step is tried a hundred times at most
			return lose(rec, at)
		}
		st.contend, st.yields = time.Now().Add(req.Patience(time.Second)), req.LastSeq == 0
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		err := s.carryOut(ctx, st)
		require.ErrorIs(t, err, driver.ErrContention)
		return time.Since(begun)
	}
	joins, holds := request("p", "a", 1), follow(request("p", "a", 1), driver.Answer{Seq: 1, Nonce: 1001, Grant: driver.Grant{Share: 1}})
	require.GreaterOrEqual(t, took(joins), 250*time.Millisecond)
	require.GreaterOrEqual(t, took(holds), 750*time.Millisecond)
}

// Who joins does not even try while holders of shares wait to renew them. Holders of a record that nobody writes any more
// are dead, and nobody waits for them.
func TestWhoJoinsWaitsForHolders(t *testing.T) {
	on := current(t)
	s := open(t, on)
	mustSync(t, s, slow(request("p", "b", 1)))
	l, subject := line{s, s.nc}, s.prefix+"p"
	info, e, err := l.read(t.Context(), subject, nil)
	require.NoError(t, err)
	rec, _, err := s.moment(&poll{info, e}, subject)
	require.NoError(t, err)
	lease := driver.DefaultLease.Microseconds()
	rec.Clock += lease
	row := rec.Rows[0]
	row.Claim, row.Answered, row.LastSeen = 1, 1, rec.Clock-lease*6/10
	for i := range 64 {
		row.ID = nameOf(i)
		rec.Rows = append(rec.Rows, row)
	}
	require.True(t, rec.HoldersWait())
	value, err := rec.AppendBinary(nil)
	require.NoError(t, err)
	write := func() {
		info, e, err := l.read(t.Context(), subject, nil)
		require.NoError(t, err)
		require.NoError(t, l.write(t.Context(), subject, value, e.seq, info))
	}
	write()

	carriedOut := 0
	join := func(contend time.Duration) error {
		return s.carryOut(t.Context(), &step{
			pool: "p", mayCreate: true, yields: true, contend: time.Now().Add(contend),
			apply: func(*driver.Record, driver.At) bool { carriedOut++; return false },
		})
	}
	s.tried = func(int) { write() } // as others that live
	require.ErrorIs(t, join(50*time.Millisecond), driver.ErrContention)
	require.Zero(t, carriedOut)
	s.tried = nil
	require.NoError(t, join(time.Minute), "a slow machine may take longer than 50 ms for two tries")
	require.Equal(t, 1, carriedOut)
}

// Syncs of one Store on one pool do not compete with each other, and one that hangs holds up nobody for longer than
// the others' contexts last, nor other pools.
func TestTurns(t *testing.T) {
	on := current(t)
	s := open(t, on)
	mustSync(t, s, request("p", "b", 1))
	var tries, most atomic.Int64
	s.tried = func(n int) { tries.Add(1); most.Store(max(most.Load(), int64(n))) }
	done := make(chan error)
	for i := range 20 {
		go func() {
			_, err := trySync(s, request("p", nameOf(i), 1))
			done <- err
		}()
	}
	for range 20 {
		require.NoError(t, <-done)
	}
	require.Equal(t, int64(20), tries.Load(), "one try for each")

	free, err := s.turns.take(t.Context(), "p")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Sync(ctx, request("p", "late", 1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	mustSync(t, s, request("another pool", "a", 1))
	free()
	mustSync(t, s, request("p", "late", 1))
	require.Empty(t, s.turns.of, "nothing is kept of a pool that is not in use")
}
