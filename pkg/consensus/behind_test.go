package consensus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// granted is the answer that gives the whole to the only processor of a pool.
func granted(req *Request) Answer {
	return Answer{
		Seq: req.Seq, Nonce: req.Nonce, Lease: DefaultLease, Revision: 1,
		Tags: []TagAnswer{{Share: Whole, Live: 1, PoolSize: 1, Agreed: true, Roster: []RosterRow{{ID: "a", Claim: Whole, Demand: Whole, PoolSize: 1}}}},
	}
}

// steady is a processor that has taken the answers to n requests, whose nonces are
// 100 times their numbers.
func steady(t *testing.T, n uint64) *Processor {
	t.Helper()
	p := NewProcessor(ProcessorConfig{Pool: "p", ID: "a", OnStoreLoss: Stop}, "1")
	for i := range n {
		req := p.Request(time.Duration(i)*time.Second, 100*(i+1), Whole)
		require.NoError(t, p.Take(time.Duration(i)*time.Second, granted(&req), ""))
	}
	return p
}

func TestProcessorTellsAStoreThatIsBehindWhatItHasSent(t *testing.T) {
	p := steady(t, 50)
	now := 50 * time.Second
	req := p.Request(now, 1, Whole)
	require.Zero(t, req.Recalled)
	require.NoError(t, p.Take(now, Answer{Status: Behind, Seq: req.Seq, Nonce: req.Nonce, Newest: Ticket{40, 4000}}, "2"))
	require.Equal(t, Whole, p.Held(now), "the share goes on")
	require.Equal(t, now, p.Next(now, 1), "asks at once")

	next := p.Request(now, 2, Whole)
	require.NoError(t, next.Validate())
	require.Equal(t, Ticket{40, 4000}, next.Recalled)
	require.Equal(t, "1", next.Incarnation)
	require.Equal(t, []Ticket{{req.Seq, req.Nonce}}, next.Unanswered)
	require.NoError(t, p.Take(now, granted(&next), "2"))
	last := p.Request(now, 3, Whole)
	require.Zero(t, last.Recalled, "once")
}

// The newest request on record may be that of another process, or older than what
// the processor remembers: it cannot tell, and starts anew.
func TestProcessorStartsAnewBehindARequestThatItDoesNotRemember(t *testing.T) {
	const reach = uint64(len(history{}.tickets))
	for name, c := range map[string]struct {
		answered uint64
		newest   Ticket
		stays    bool
	}{
		"another nonce":                  {50, Ticket{40, 4001}, false},
		"no request":                     {50, Ticket{}, false},
		"one that was not answered":      {50, Ticket{51, 1}, false},
		"the first":                      {50, Ticket{1, 100}, true},
		"the oldest that it remembers":   {reach + 9, Ticket{10, 1000}, true},
		"an older one than it remembers": {reach + 9, Ticket{9, 900}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := steady(t, c.answered)
			now := time.Duration(c.answered) * time.Second
			req := p.Request(now, 1, Whole)
			require.NoError(t, p.Take(now, Answer{Status: Behind, Seq: req.Seq, Nonce: req.Nonce, Newest: c.newest}, "2"))
			next := p.Request(now, 2, Whole)
			if c.stays {
				require.Equal(t, "1", next.Incarnation)
				require.Equal(t, Whole, p.Held(now))
				return
			}
			require.Equal(t, "2", next.Incarnation)
			require.Zero(t, p.Held(now))
			require.Equal(t, Request{
				Pool: "p", ID: "a", Incarnation: "2", Seq: 1, Nonce: 2, Revision: 1, Lease: DefaultLease,
				Tags: []TagReport{{Wanted: Whole, Demand: Whole}},
			}, next, "nothing of the old life")
		})
	}
}

// A processor that repeats its newest request for want of room to name another says
// in it what the store asks.
func TestRepeatTellsAStoreThatIsBehind(t *testing.T) {
	p := steady(t, 5)
	now := 5 * time.Second
	var req Request
	for range MaxUnanswered + 3 {
		req = p.Request(now, 7, Whole)
		p.Failed(now, req.Seq)
	}
	require.Equal(t, uint64(5+MaxUnanswered), req.Seq)
	require.NoError(t, p.Take(now, Answer{Status: Behind, Seq: req.Seq, Nonce: req.Nonce, Newest: Ticket{3, 300}}, "2"))
	again := p.Request(now, 8, Whole)
	req.Recalled = Ticket{3, 300}
	require.Equal(t, req, again)
	require.NoError(t, p.Take(now, granted(&again), "2"))
	require.Equal(t, Whole, p.Held(now))
}

// A processor whose row is behind may use what the store has forgotten, and so may
// the clone whose row it is.
func TestFactsCountWhenTheRowIsBehind(t *testing.T) {
	for _, c := range []struct {
		name  string
		had   []Share
		inUse []TagReport
		want  []Share
	}{
		{"more in use", []Share{half / 2}, []TagReport{{InUse: half}}, []Share{half}},
		{"less in use", []Share{half}, []TagReport{{InUse: half / 2}}, []Share{half}},
		{"a tag that the row has not", []Share{half}, []TagReport{{InUse: half}, {Tag: "x", InUse: half / 4}}, []Share{half, half / 4}},
		{"a tag before another", []Share{0, half}, []TagReport{{Tag: "a", InUse: half / 4}}, []Share{0, half / 4, half}},
		{"a tag that the request does not name", []Share{half / 2, half / 4}, []TagReport{{InUse: half}}, []Share{half, half / 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := standing(holder("a", "1", c.had...))
			req := follow(c.inUse...)
			req.Seq, req.LastSeq = 10, 9
			for range 2 { // the second time nothing is added
				ans, _ := r.Sync(&req, after(time.Second))
				require.Equal(t, Behind, ans.Status)
				var claims []Share
				for _, e := range r.Rows[0].Entries {
					require.Equal(t, e.Claim, max(e.InUse, e.Answered))
					claims = append(claims, e.Claim)
				}
				require.Equal(t, c.want, claims)
			}
			_, err := r.AppendBinary(nil)
			require.NoError(t, err, "the record is well formed")
		})
	}
}

// A clone tells of a store that went back as well as its original does, for it
// draws on what the store has forgotten.
func TestCloneThatHasSeenANewerStoreFreezesThePool(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Request)
		cause  FreezeCause
	}{
		"a later revision": {func(r *Request) { r.LastNonce, r.Revision = 701, 99 }, FreezeRollback},
		"neither":          {func(r *Request) { r.LastNonce = 701 }, FreezeNone},
	} {
		t.Run(name, func(t *testing.T) {
			r := standing(holder("a", "1", half))
			req := follow(TagReport{InUse: half, Wanted: half})
			c.change(&req)
			ans, _ := r.Sync(&req, after(time.Second))
			require.Equal(t, Cloned, ans.Status)
			require.Equal(t, RowCloned, r.Rows[0].State)
			require.Equal(t, c.cause, r.FrozenBy)
			require.Equal(t, c.cause != FreezeNone, r.FrozenUntil > r.Clock)
			require.GreaterOrEqual(t, r.Revision, req.Revision)
		})
	}
}
