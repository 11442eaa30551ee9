package driver

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEverybodyIsShownWhatIsReported lets two processors report at random: each answer and Load show the newest report of
// both, every field of it, and the answer tells the store's clock.
func TestEverybodyIsShownWhatIsReported(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r, shown, asked := &Record{}, map[string]RosterRow{}, map[string]*Request{}
	for i := range 200 {
		at := after(time.Duration(i) * time.Second)
		at.Remembers = remembers
		text := func() string { return string([]byte{byte(1 + rng.IntN(255)), byte(1 + rng.IntN(255))}[:rng.IntN(3)]) }
		req := &Request{
			Pool: "pool", ID: []string{"a", "b"}[rng.IntN(2)], Incarnation: "1", Lease: longest, Seq: uint64(i) + 1, Nonce: rng.Uint64(),
			Report: Report{
				InUse: Share(rng.Int64N(int64(half))), Wanted: Share(rng.Int64N(int64(Whole))), Demand: Share(rng.Int64N(int64(Whole))),
				PoolSize: rng.IntN(4), Note: text(), Busy: text() + "\x00",
			},
		}
		if last := asked[req.ID]; last != nil {
			req.LastSeq, req.LastNonce, req.LastTime, req.Revision = last.Seq, last.Nonce, r.Clock, r.Revision
		}
		ans, _ := r.Sync(req, at)
		require.Equal(t, Granted, ans.Status)
		require.Equal(t, at.Now, ans.Wall)
		shown[req.ID] = RosterRow{
			ID: req.ID, Claim: max(req.InUse, ans.Share), Demand: req.Demand, PoolSize: req.PoolSize, Note: req.Note, Busy: req.Busy,
		}
		asked[req.ID] = req
		_, loaded, err := r.Load()
		require.NoError(t, err)
		require.Len(t, ans.Roster, len(shown))
		for k := range loaded {
			require.Equal(t, shown[loaded[k].ID], ans.Roster[k])
			loaded[k].Silent = 0
		}
		require.Equal(t, ans.Roster, loaded)
	}
}
