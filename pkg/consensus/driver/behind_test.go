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
