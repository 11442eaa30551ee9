package consensus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// answerIssuing takes the store's answer to the next request of p.
func answerIssuing(t *testing.T, p *Processor, now time.Duration, issuing bool, share Share) {
	t.Helper()
	req := p.Request(now, uint64(now)+1, Whole)
	err := p.Take(now, Answer{
		Seq: req.Seq, Nonce: req.Nonce, Lease: DefaultLease, Time: now.Microseconds(), Revision: req.Seq, Issuing: issuing,
		Tags: []TagAnswer{{Share: share, Live: 1, Roster: []RosterRow{{ID: "a", Demand: Whole}}}},
	}, "2")
	require.NoError(t, err)
}

// A processor issues from the answer that says so until it has a share again, and not
// while its lease is over or its clock cannot be trusted.
func TestProcessorIssuing(t *testing.T) {
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a"}, "1")
	require.False(t, p.Issuing(0), "nothing is known")
	now := time.Second
	answerIssuing(t, p, now, true, 0)
	require.True(t, p.Issuing(now))
	require.Equal(t, now+DefaultLease, p.Until())

	now += time.Second
	p.Void(now)
	require.False(t, p.Issuing(now), "the machine was suspended")
	require.Equal(t, urgencyNow, p.urgency)
	answerIssuing(t, p, now, true, 0)
	require.True(t, p.Issuing(now))

	now += DefaultLease
	p.Failed(now, p.sent.Seq)
	require.False(t, p.Issuing(now), "the lease is over")
	require.Equal(t, StateLost, p.state)
	require.False(t, p.degraded, "there is no share to go on with")

	answerIssuing(t, p, now, true, 0)
	now += time.Second
	answerIssuing(t, p, now, false, 0)
	require.True(t, p.Issuing(now), "what was reserved is good until there is room for shares")
	now += time.Second
	answerIssuing(t, p, now, false, Whole)
	require.False(t, p.Issuing(now))
	now += time.Second
	answerIssuing(t, p, now, false, 0)
	require.False(t, p.Issuing(now), "a processor without a share")
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
			p.Issue(tc.spacing, tc.strict)
			for i := range tc.contenders + 3 {
				row := RosterRow{ID: string(rune('a' + i))}
				if i < tc.contenders {
					row.Demand = 1
				}
				p.answer.Roster = append(p.answer.Roster, row)
			}
			require.Equal(t, tc.contenders, p.contenders())
			require.Equal(t, tc.want, p.ahead(throttle.Order{Spacing: tc.spacing, Ahead: tc.ahead}))
		})
	}
}
