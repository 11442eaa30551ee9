package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A processor whose row is behind may use what the store has forgotten, and so may
// the clone whose row it is.
func TestFactsCountWhenTheRowIsBehind(t *testing.T) {
	for _, c := range []struct {
		name             string
		had, inUse, want Share
	}{
		{"more in use", half / 2, half, half},
		{"less in use", half, half / 2, half},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := standing(holder("a", "1", c.had))
			req := follow(Report{InUse: c.inUse})
			req.Seq, req.LastSeq = 10, 9
			for range 2 { // the second time nothing is added
				ans, _ := r.Sync(&req, after(time.Second))
				require.Equal(t, Behind, ans.Status)
				row := r.Rows[0]
				require.Equal(t, row.Claim, max(row.InUse, row.Answered))
				require.Equal(t, c.want, row.Claim)
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
			req := follow(Report{InUse: half, Wanted: half})
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
