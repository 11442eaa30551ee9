package testkit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var sink []byte

func TestBytes(t *testing.T) {
	require.InDelta(t, 1024, Allocated(10_000, func() { sink = make([]byte, 1024) }), 16)
	require.InDelta(t, 0, Allocated(10_000, func() {}), 16)

	calls := 0
	require.InDelta(t, 0, Allocated(10_000, func() {
		if calls++; calls == 1 {
			sink = make([]byte, 100<<20)
		}
	}), 16, "the first call does not count")
	require.Equal(t, 10_001, calls)
}
