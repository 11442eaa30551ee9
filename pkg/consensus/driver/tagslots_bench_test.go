package driver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// BenchmarkStepWithTagSlots reads a record of a hundred rows with slots of so many tags each, makes a sync and writes it, as a store does that
// keeps it as bytes.
func BenchmarkStepWithTagSlots(b *testing.B) {
	for _, tags := range []int{0, 8, wire.MaxTagSlots} {
		b.Run(fmt.Sprint("tags=", tags), func(b *testing.B) {
			r := recordOfTags(tags)
			row := &r.Rows[50]
			record := written(b, r)
			req := Request{
				Pool: "p", ID: row.ID, Incarnation: row.Incarnation, Seq: row.Seq + 1, LastSeq: row.Seq, LastNonce: row.Nonce,
				LastTime: r.Clock, Revision: 1, Lease: DefaultLease,
			}
			for _, c := range row.TagClaims {
				req.TagSlots = append(req.TagSlots, TagSlots{c.Key, 1, 2, 3, 100})
			}
			for b.Loop() {
				rec, err := ParseRecord(record)
				require.NoError(b, err)
				ans, _ := rec.Sync(&req, At{Now: r.Clock})
				require.Equal(b, Granted, ans.Status)
				_, err = rec.AppendBinary(nil)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(len(record)), "record-bytes")
		})
	}
}
