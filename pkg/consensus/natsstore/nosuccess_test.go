package natsstore

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A first sync that makes the bucket may have no time left to use it: who waits for it may try again.
func TestWhoHadTooLittleTimeIsTold(t *testing.T) {
	for tries, timeout := range map[int]bool{1: true, maxAttempts - 1: true, maxAttempts: false} {
		err := noSuccess("p", tries, errMade)
		var e interface{ Timeout() bool }
		require.Equal(t, timeout, errors.As(err, &e) && e.Timeout(), "%d tries", tries)
		require.ErrorContains(t, err, "the bucket was just made")
		require.ErrorIs(t, noSuccess("p", tries, errConflict), driver.ErrContention)
	}
}
