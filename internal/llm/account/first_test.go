package account

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestFirstTokensOfADay(t *testing.T) {
	for of, want := range map[[2]int]int{
		{2400, 2400}: 100, {240, 240}: 10, {100, 100}: 10, {5, 5}: 5, {2400, 50}: 50, {2400, 3}: 3, // amount and burst
	} {
		require.Equal(t, want, firstOf(of[0], of[1]).tokens, of)
	}
}

// A call that costs nothing after all, as one of which a part of the answer was refused, has spent nothing, whatever its usage was.
func TestAFreeCallHasSpentNothing(t *testing.T) {
	a := &attempt{price: &money{whole: 7}}
	require.Equal(t, money{whole: 7}, a.spent(3))
	a.free()
	require.Zero(t, a.spent(0))
}

// A tagger counts the draws that it hands out, for each tag.
type tagger struct {
	throttle.Limiter

	tags *[]string
}

func (t tagger) ForTag(tag string) throttle.Limiter {
	*t.tags = append(*t.tags, tag)
	return t.Limiter
}

// A budget in a limiter of another package is drawn from once for the tag, and once for the account: each draw there costs money.
func TestABudgetElsewhereIsDrawnOncePerTag(t *testing.T) {
	var tags []string
	p := &part{isBudget: true, max: 1, limiter: tagger{throttle.All(), &tags}}
	(&limiter{Limits: &Limits{}, tag: "a"}).of(p)
	require.Equal(t, []string{"a", ""}, tags)
	tags = nil
	(&limiter{Limits: &Limits{}, tag: "a/b", first: "a"}).of(p)
	require.Equal(t, []string{"a", "a/b", ""}, tags)
}
