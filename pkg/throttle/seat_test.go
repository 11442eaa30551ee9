package throttle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// TestEverySourceHasItsOwnSeat: an attempt finds the seat by the source, and an All the source by the seat.
func TestEverySourceHasItsOwnSeat(t *testing.T) {
	tokens, err := New(Limit{Max: 10}, WithName("tokens"), WithTag("all"), WithQuotas(tagsOf(map[string]Quota{"a": {Total: 5}, "b": {}})))
	require.NoError(t, err)
	plain, err := New(Limit{Max: 10}, WithName("plain"), WithTag("all"))
	require.NoError(t, err)
	slots, err := NewInFlight(10, WithName("slots"), WithTag("all"))
	require.NoError(t, err)
	j, ok := All(tokens, ForTags(tokens, "a", "b"), plain, slots).(*tagged)
	require.True(t, ok)
	var ranks []uint64
	var labels []string
	for i, p := range j.Children {
		require.Same(t, p.Seat, &ownerOf(&p).Seat)
		require.Equal(t, p.Seat.Source, j.Parts[i].Source)
		require.Equal(t, p.Seat.Gate, j.Parts[i].Gate)
		e := ownerOf(&p).errorOf(sharing.Refusal{Reason: ReasonClosed, Cost: 3})
		require.Equal(t, ownerOf(&p).of.name, e.Limit)
		require.NotNil(t, e.by)
		labels = append(labels, e.Limit+"/"+e.Tag)
		ranks = append(ranks, p.Seat.Rank)
	}
	require.IsIncreasing(t, ranks)
	require.ElementsMatch(t, []string{
		"tokens/all", "tokens/all", "tokens/all", // the limit, once for both, and the pause and the bucket of the others
		"tokens/a", "tokens/a", "tokens/b", // the pause of both, by the first, and the buckets of a and b
		"plain/all", "slots/all",
	}, labels)
}
