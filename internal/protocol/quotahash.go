package protocol

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// QuotaHashOf returns the QuotaHash of a processor configured with q and a limit with the period per. So the owner of quotas can tell,
// without a processor, whether a pool has the same.
func QuotaHashOf(q limit.Quotas, per time.Duration) string {
	q = q.WithDefaults(per)
	return fmt.Sprintf("%08x", hashOfQuotas(&q))
}

// hashOfQuotas is a hash of quotas with their defaults filled in.
func hashOfQuotas(q *limit.Quotas) uint32 {
	text, err := json.Marshal(q)
	if err != nil {
		text = []byte(err.Error()) // quotas can be written
	}
	h := fnv.New32a()
	_, _ = h.Write(text) // never fails
	return h.Sum32()
}
