package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Q6: tags that come after the table is full share quotas, but only with tags that have the same one.
func TestTagsShareOnlyTheQuotaThatTheyHave(t *testing.T) {
	th, err := New(Limit{Max: 100_000, Per: time.Second}, WithQuotas(Quotas{Match: []QuotaPattern{
		{Tag: "gold/*", Quota: Quota{Total: 5000}}, {Tag: "free/*", Quota: Quota{Total: 2}},
	}}))
	require.NoError(t, err)
	defer func() { require.NoError(t, th.Close()) }()
	th.tags.most = fewTags
	for i := range fewTags + 10*sharedTags {
		th.ForTag(fmt.Sprint("gold/", i))
	}
	for i := range 10 * sharedTags {
		g := th.ForTag(fmt.Sprint("free/", i)).(*tagView).first() //nolint:forcetypeassert,errcheck // it is one
		require.LessOrEqual(t, g.quota().Total, 2, g.name)
	}
}
