package operate_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// What is asked for wrongly is refused with the field, and changes nothing. The rest is tested through the CLI and the console.
func TestWhatIsRefused(t *testing.T) {
	store := memstore.New()
	p := operate.Pool{Store: store, Name: "p"}
	request := driver.Request{Pool: "p", ID: "a", Incarnation: "1", Seq: 1, Nonce: 1, Lease: driver.DefaultLease}
	_, err := store.Sync(t.Context(), request)
	require.NoError(t, err)
	for want, do := range map[string]func() error{
		"Max is below 1, allowed: 1 to 1000000000": func() error {
			_, err := p.SetLimit(t.Context(), operate.Override{})
			return err
		},
		`Zone is "Mars", allowed: a time zone`: func() error {
			_, err := p.SetSpent(t.Context(), throttle.Quotas{}, throttle.Budget{Per: "day", Zone: "Mars"}, operate.SpentChange{Tokens: 1})
			return err
		},
		`Per is "", allowed: hour, day or month`: func() error {
			_, err := p.SetSpent(t.Context(), throttle.Quotas{}, throttle.Budget{}, operate.SpentChange{Tokens: 1})
			return err
		},
		"Tag is": func() error { return p.ClearQuota(t.Context(), "a\nb") },
	} {
		_, refused := errors.AsType[*driver.RequestError](do())
		require.True(t, refused, want)
		require.ErrorContains(t, do(), want)
	}
	docs, _, err := store.Load(t.Context(), "p")
	require.NoError(t, err)
	require.Empty(t, docs)

	require.NoError(t, store.Leave(t.Context(), driver.Leave{Pool: "p", ID: "a", Incarnation: "1", Seq: 2, LastSeq: 1, LastNonce: 1}))
	_, empty := errors.AsType[*operate.EmptyPoolError](p.ForgiveDebt(t.Context(), "", ""))
	require.True(t, empty)
	_, err = operate.Pools(t.Context(), struct{ driver.Store }{store})
	require.ErrorIs(t, err, driver.ErrNoList)
}
