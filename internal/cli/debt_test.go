package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

func TestDebtForgive(t *testing.T) {
	store := memstore.New()
	join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
	out, err := tm.run(t, "debt", "forgive", "--reason=a wrong number", "--by=ann")
	require.NoError(t, err)
	require.Equal(t, "p: debt is forgiven, with the next sync of each pod\n", out)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no record", []string{"debt", "forgive", "--pool=nobody"}},
		{"of the debt that is forgiven", []string{"debt", "forgive", "--by=a\tb"}},
	} {
		_, err := tm.run(t, c.args...)
		require.ErrorContains(t, err, c.want)
	}
}
