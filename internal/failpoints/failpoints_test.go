package failpoints_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/failpoints"
)

func TestARuleIsLeftOutUntilItIsRestored(t *testing.T) {
	b := failpoints.New("engine", map[string]failpoints.Rule{"second": {Number: 1, Says: "says two"}, "first": {Number: 0, Says: "says one"}})
	require.Equal(t, []string{"first", "second"}, b.Names())
	require.Equal(t, "says two", b.Says("second"))
	require.Empty(t, b.Says("third"))
	restore, err := b.LeaveOut("second")
	require.NoError(t, err)
	require.True(t, b.Skip(1))
	require.False(t, b.Skip(0))
	restore()
	require.False(t, b.Skip(1))
	_, err = b.LeaveOut("third")
	require.EqualError(t, err, `engine: rule is "third", allowed: ["first" "second"]`)
}
