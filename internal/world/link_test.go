package world

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

func request(id string) driver.Request {
	return driver.Request{Pool: "p", ID: id, Incarnation: "x", Seq: 1, Nonce: 1, Lease: driver.DefaultLease}
}

// Each fault does to a request what it says, and nothing once it is over.
func TestFaultsOfALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := errors.New("gone")
		ask := func(l *Link) (driver.Answer, time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			ans, err := l.Sync(ctx, request("a"))
			return ans, time.Since(began), err
		}
		l := NewLink(memstore.New())
		for name, tc := range map[string]struct {
			begin, end func()
			want       error
			takes      time.Duration
			arrives    bool
		}{
			"cut":     {func() { l.Cut.Store(true) }, func() { l.Cut.Store(false) }, ErrCut, 0, false},
			"dead":    {func() { l.Dead.Store(true) }, func() { l.Dead.Store(false) }, ErrCut, 0, false},
			"own":     {func() { l.CutWith(own) }, func() { l.CutWith(nil) }, own, 0, false},
			"hangs":   {func() { l.Hang.Store(true) }, func() { l.Hang.Store(false) }, context.DeadlineExceeded, time.Minute, false},
			"takes":   {func() { l.Takes.Store(int64(time.Hour)) }, func() { l.Takes.Store(0) }, context.DeadlineExceeded, time.Minute, false},
			"slow":    {func() { l.Takes.Store(int64(time.Second)) }, func() { l.Takes.Store(0) }, nil, time.Second, true},
			"returns": {func() { l.Returns.Store(int64(time.Hour)) }, func() { l.Returns.Store(0) }, context.DeadlineExceeded, time.Minute, true},
			"loses":   {func() { l.Lose.Store(1) }, func() {}, ErrCut, 0, true},
		} {
			before := l.Answered.Load()
			tc.begin()
			_, took, err := ask(l)
			require.ErrorIs(t, err, tc.want, name)
			require.Equal(t, tc.takes, took, name)
			require.Equal(t, tc.arrives, l.Answered.Load() > before, name)
			tc.end()
			ans, took, err := ask(l)
			require.NoError(t, err, name)
			require.Zero(t, took, name)
			require.NotEmpty(t, ans.Roster, name)
		}

		leave := driver.Leave{Pool: "p", ID: "a", Incarnation: "x"}
		l.Cut.Store(true)
		require.ErrorIs(t, l.Leave(t.Context(), leave), ErrCut)
		l.Dead.Store(true)
		require.NoError(t, l.Leave(t.Context(), leave))
		_, roster, err := l.Load(t.Context(), "p")
		require.NoError(t, err)
		require.Len(t, roster, 1, "nobody has heard of it")
	})
}
