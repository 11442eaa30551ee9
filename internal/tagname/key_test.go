package tagname

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every process and every release turns names into the same keys.
func TestKey(t *testing.T) {
	require.Equal(t, OtherKey, firstBytes("other"))
	require.Equal(t, OtherKey, Key(""))
	require.Equal(t, uint64(0x47b8d15e60c6126f), Key("acme"))
	require.NotEqual(t, OtherKey, Key("other"), "a tag of that name is one of its own")
}
