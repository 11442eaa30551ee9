package stage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := MeasureLateness(ctx)
		time.Sleep(time.Second)
		require.Zero(t, l.Worst(), "virtual time is never late")
		cancel()
		time.Sleep(time.Second)
		l.note(300 * time.Millisecond)
		l.note(20 * time.Millisecond)
		require.Equal(t, 300*time.Millisecond, l.Worst())
	})
}
