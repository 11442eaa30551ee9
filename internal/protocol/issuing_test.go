package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// answerIssuing takes the store's answer to the next request of p.
func answerIssuing(t *testing.T, p *Processor, now time.Duration, issuing bool, share driver.Share) {
	t.Helper()
	req := p.Request(now, uint64(now)+1, Observation{Demand: driver.Whole})
	err := p.Take(now, driver.Answer{
		Seq: req.Seq, Nonce: req.Nonce, Lease: driver.DefaultLease, Time: now.Microseconds(), Revision: req.Seq, Issuing: issuing,
		Grant: driver.Grant{Share: share, Live: 1, Roster: []driver.RosterRow{{ID: "a", Demand: driver.Whole}}},
	}, "2")
	require.NoError(t, err)
}

// A processor issues from the answer that says so until it has a share again, and not
// while its lease is over or its clock cannot be trusted.
func TestProcessorIssuing(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	require.False(t, p.isIssuing(0), "nothing is known")
	now := time.Second
	answerIssuing(t, p, now, true, 0)
	require.True(t, p.isIssuing(now))
	require.Equal(t, now+driver.DefaultLease, p.Until())

	now += time.Second
	p.Void(now)
	require.False(t, p.isIssuing(now), "the machine was suspended")
	require.Equal(t, urgencyNow, p.urgency)
	answerIssuing(t, p, now, true, 0)
	require.True(t, p.isIssuing(now))

	now += driver.DefaultLease
	p.Failed(now, p.sent.Seq)
	require.False(t, p.isIssuing(now), "the lease is over")
	require.Equal(t, StateLost, p.state)
	require.False(t, p.degraded, "there is no share to go on with")

	answerIssuing(t, p, now, true, 0)
	now += time.Second
	answerIssuing(t, p, now, false, 0)
	require.True(t, p.isIssuing(now), "what was reserved is good until there is room for shares")
	now += time.Second
	answerIssuing(t, p, now, false, driver.Whole)
	require.False(t, p.isIssuing(now))
	now += time.Second
	answerIssuing(t, p, now, false, 0)
	require.False(t, p.isIssuing(now), "a processor without a share")
}

// A low limit that is not strict reserves one slot for each contender, and none that is far
// away.
func TestReservesAhead(t *testing.T) {
	for _, tc := range []struct {
		name       string
		spacing    time.Duration
		strict     bool
		ahead      int // as configured
		contenders int
		want       int
	}{
		{"strict", 100 * time.Millisecond, true, 0, 5, 0},
		{"strict with some", 100 * time.Millisecond, true, 7, 5, 7},
		{"one for each", 100 * time.Millisecond, false, 0, 5, 5},
		{"more are configured", 100 * time.Millisecond, false, 9, 5, 9},
		{"as far as a quarter of the lease", time.Second, false, 0, 5, 2},
		{"none that is far away", time.Minute, false, 0, 5, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
			p.Configure(sharing.Terms{Spacing: tc.spacing, Strict: tc.strict})
			var answer driver.Answer
			for i := range tc.contenders + 3 {
				row := driver.RosterRow{ID: string(rune('a' + i))}
				if i < tc.contenders {
					row.Demand = 1
				}
				answer.Roster = append(answer.Roster, row)
			}
			p.permits.take(&p.core, 0, &answer)
			require.Equal(t, tc.contenders, p.permits.contenders)
			require.Equal(t, tc.want, p.permits.ahead(sharing.Order{Spacing: tc.spacing, Ahead: tc.ahead}, p.Lease))
		})
	}
}

// Whoever gets nothing comes back at a time of its own, never before there can be something;
// alone, or when there is a slot for each, at that time exactly.
func TestWhoeverMissesASlotComesBackAtATimeOfItsOwn(t *testing.T) {
	const spacing, retry = time.Second, 300 * time.Millisecond
	s := func(count int) *sharing.Slots {
		return &sharing.Slots{Count: count, Wait: 200 * time.Millisecond, Spacing: spacing}
	}
	near, far := 10*time.Millisecond, 3*spacing
	for name, c := range map[string]struct {
		slots             *sharing.Slots
		ahead, contenders int
		took              time.Duration
		least             time.Duration
		spread            bool
	}{
		"one slot for each":            {s(1), 9, 10, near, retry, false},
		"none, and one for each":       {s(0), 9, 10, near, retry, true},
		"none, and many contend":       {s(0), 0, 10, near, retry, true},
		"has one, and many contend":    {s(1), 0, 10, near, retry, true},
		"a store far away, many":       {s(0), 0, 10, far, far, true},
		"has one, a store far away":    {s(1), 0, 10, far, far + 200*time.Millisecond, true},
		"alone, and has what it wants": {s(1), 0, 1, near, retry, false},
	} {
		first, middle, last := again(c.slots, retry, sharing.Order{Ahead: c.ahead}, c.took, c.contenders, 0, 0),
			again(c.slots, retry, sharing.Order{Ahead: c.ahead}, c.took, c.contenders, 0, 0.5),
			again(c.slots, retry, sharing.Order{Ahead: c.ahead}, c.took, c.contenders, 0, 1)
		require.Equal(t, c.least, first, name)
		require.Equal(t, c.spread, last > first, name)
		require.InDelta(t, float64(first+last)/2, float64(middle), 1, name)
		if c.took >= spacing {
			require.GreaterOrEqual(t, last-first, spacing, name, "or all would come in step")
		}
	}
}
