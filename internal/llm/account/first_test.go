package account

import (
	"testing"

	"github.com/stretchr/testify/require"
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
