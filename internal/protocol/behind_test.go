package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// granted is the answer that gives the whole to the only processor of a pool.
func granted(req *driver.Request) driver.Answer {
	return driver.Answer{
		Seq: req.Seq, Nonce: req.Nonce, Lease: driver.DefaultLease, Revision: 1,
		Grant: driver.Grant{Share: driver.Whole, Live: 1, PoolSize: 1, Agreed: true, Roster: []driver.RosterRow{{
			ID: "a", Claim: driver.Whole,
			Demand: driver.Whole, PoolSize: 1,
		}}},
	}
}

// steady is a processor that has taken the answers to n requests, whose nonces are
// 100 times their numbers.
func steady(t *testing.T, n uint64) *Processor {
	t.Helper()
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a", OnStoreLoss: Stop}, "1")
	for i := range n {
		req := p.Request(time.Duration(i)*time.Second, 100*(i+1), Observation{Demand: driver.Whole})
		require.NoError(t, p.Take(time.Duration(i)*time.Second, granted(&req), ""))
	}
	return p
}

func TestProcessorTellsAStoreThatIsBehindWhatItHasSent(t *testing.T) {
	p := steady(t, 50)
	now := 50 * time.Second
	req := p.Request(now, 1, Observation{Demand: driver.Whole})
	require.Zero(t, req.Recalled)
	require.NoError(t, p.Take(now, driver.Answer{Status: driver.Behind, Seq: req.Seq, Nonce: req.Nonce, Newest: driver.Ticket{Seq: 40, Nonce: 4000}}, "2"))
	require.Equal(t, driver.Whole, p.Held(now), "the share goes on")
	require.Equal(t, now, p.Next(now, 1), "asks at once")

	next := p.Request(now, 2, Observation{Demand: driver.Whole})
	require.NoError(t, next.Validate())
	require.Equal(t, driver.Ticket{Seq: 40, Nonce: 4000}, next.Recalled)
	require.Equal(t, "1", next.Incarnation)
	require.Equal(t, []driver.Ticket{{Seq: req.Seq, Nonce: req.Nonce}}, next.Unanswered)
	require.NoError(t, p.Take(now, granted(&next), "2"))
	last := p.Request(now, 3, Observation{Demand: driver.Whole})
	require.Zero(t, last.Recalled, "once")
}

// The newest request on record may be that of another process, or older than what
// the processor remembers: it cannot tell, and starts again.
func TestProcessorStartsAnewBehindARequestThatItDoesNotRemember(t *testing.T) {
	const reach = uint64(len(history{}.tickets))
	for name, c := range map[string]struct {
		answered uint64
		newest   driver.Ticket
		stays    bool
	}{
		"another nonce":                  {50, driver.Ticket{Seq: 40, Nonce: 4001}, false},
		"no request":                     {50, driver.Ticket{}, false},
		"one that was not answered":      {50, driver.Ticket{Seq: 51, Nonce: 1}, false},
		"the first":                      {50, driver.Ticket{Seq: 1, Nonce: 100}, true},
		"the oldest that it remembers":   {reach + 9, driver.Ticket{Seq: 10, Nonce: 1000}, true},
		"an older one than it remembers": {reach + 9, driver.Ticket{Seq: 9, Nonce: 900}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := steady(t, c.answered)
			now := time.Duration(c.answered) * time.Second
			req := p.Request(now, 1, Observation{Demand: driver.Whole})
			require.NoError(t, p.Take(now, driver.Answer{Status: driver.Behind, Seq: req.Seq, Nonce: req.Nonce, Newest: c.newest}, "2"))
			next := p.Request(now, 2, Observation{Demand: driver.Whole})
			if c.stays {
				require.Equal(t, "1", next.Incarnation)
				require.Equal(t, driver.Whole, p.Held(now))
				return
			}
			require.Equal(t, "2", next.Incarnation)
			require.Zero(t, p.Held(now))
			require.Equal(t, driver.Request{
				Pool: "p", ID: "a", Incarnation: "2", Seq: 1, Nonce: 2, Revision: 1, Lease: driver.DefaultLease,
				Report: driver.Report{Wanted: driver.Whole, Demand: driver.Whole},
			}, next, "nothing of the old life")
		})
	}
}

// A processor that repeats its newest request for want of room to name another says
// in it what the store asks.
func TestRepeatTellsAStoreThatIsBehind(t *testing.T) {
	p := steady(t, 5)
	now := 5 * time.Second
	var req driver.Request
	for range wire.MaxUnanswered + 3 {
		req = p.Request(now, 7, Observation{Demand: driver.Whole})
		p.Failed(now, req.Seq)
	}
	require.Equal(t, uint64(5+wire.MaxUnanswered), req.Seq)
	require.NoError(t, p.Take(now, driver.Answer{Status: driver.Behind, Seq: req.Seq, Nonce: req.Nonce, Newest: driver.Ticket{Seq: 3, Nonce: 300}}, "2"))
	again := p.Request(now, 8, Observation{Demand: driver.Whole})
	req.Recalled = driver.Ticket{Seq: 3, Nonce: 300}
	require.Equal(t, req, again)
	require.NoError(t, p.Take(now, granted(&again), "2"))
	require.Equal(t, driver.Whole, p.Held(now))
}
