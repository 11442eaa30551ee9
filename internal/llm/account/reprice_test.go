package account

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// Other prices count from the next call on; those that cannot be read change nothing.
func TestReprice(t *testing.T) {
	prices := map[string]Price{"small": {Input: "2.5", Output: "10"}}
	p := NewPurse(prices, nil, false, slog.New(slog.DiscardHandler))
	require.Equal(t, int64(2_500_000), p.of("small").input)
	text, err := json.Marshal(map[string]Price{"small": {Input: "1", Output: "4"}, "large": {Input: "7", Output: "9"}})
	require.NoError(t, err)
	p.reprice(text)
	require.Equal(t, int64(1_000_000), p.of("small").input)
	require.Equal(t, int64(9_000_000), p.of("unknown").output, "the dearest")
	for _, bad := range []string{"", "{}", "[1]", `{"small":{"input":"many"}}`} {
		p.reprice(json.RawMessage(bad))
		require.Equal(t, int64(1_000_000), p.of("small").input, bad)
	}
}
