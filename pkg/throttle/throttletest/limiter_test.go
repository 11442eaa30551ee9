package throttletest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestWithoutAScriptEverythingIsGrantedAndRecorded(t *testing.T) {
	l := throttletest.New()
	p, err := l.Acquire(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, 3, p.N())
	p, ok := l.TryAcquire(2)
	require.True(t, ok)
	require.Equal(t, 2, p.N())
	p, err = l.AcquireUpTo(t.Context(), 5)
	require.NoError(t, err)
	require.Equal(t, 5, p.N())

	require.Equal(t, 10, l.Used())
	require.Equal(t, []throttletest.Draw{
		{Method: throttletest.Acquire, Cost: 3, Granted: 3, Used: 3},
		{Method: throttletest.TryAcquire, Cost: 2, Granted: 2, Used: 2},
		{Method: throttletest.AcquireUpTo, Cost: 5, Granted: 5, Used: 5},
	}, l.Draws())
}

func TestSettlementsAreRecordedOnce(t *testing.T) {
	l := throttletest.New()
	p, _ := l.Acquire(t.Context(), 4)
	p.Settle(9)
	p.Cancel()
	q, _ := l.Acquire(t.Context(), 4)
	q.Cancel()
	require.Equal(t, []throttletest.Draw{
		{Method: throttletest.Acquire, Cost: 4, Granted: 4, Settled: true, Used: 9},
		{Method: throttletest.Acquire, Cost: 4, Granted: 4, Settled: true, Used: 0},
	}, l.Draws())
	require.Equal(t, 9, l.Used())
}

func TestStepsAreTakenInOrderAndTheLastGoesOn(t *testing.T) {
	mine := errors.New("mine")
	l := throttletest.New(throttletest.Grant(), throttletest.Deny(mine), throttletest.Deny(nil))
	_, err := l.Acquire(t.Context(), 1)
	require.NoError(t, err)
	_, err = l.Acquire(t.Context(), 1)
	require.Equal(t, mine, err)
	for range 2 {
		p, err := l.AcquireUpTo(t.Context(), 7)
		require.ErrorIs(t, err, throttle.ErrThrottled)
		var e *throttle.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, 7, e.Cost)
		require.Zero(t, p.N())
	}
	_, ok := l.TryAcquire(1)
	require.False(t, ok)
	require.Equal(t, 1, l.Used())
}

func TestACostOfZeroTakesAStepAndOneBelowTakesNone(t *testing.T) {
	l := throttletest.New(throttletest.Deny(nil), throttletest.Grant())
	p, err := l.Acquire(t.Context(), -3)
	require.NoError(t, err)
	require.Zero(t, p.N())
	_, ok := l.TryAcquire(0)
	require.False(t, ok, "the first step")
	p, err = l.Acquire(t.Context(), 0)
	require.NoError(t, err)
	require.Zero(t, p.N())
	require.Zero(t, l.Used())
	p.Settle(4)
	require.Equal(t, 4, l.Used())
}

func TestGrantUpToBoundsOnlyAcquireUpTo(t *testing.T) {
	l := throttletest.New(throttletest.GrantUpTo(2))
	p, err := l.AcquireUpTo(t.Context(), 5)
	require.NoError(t, err)
	require.Equal(t, 2, p.N())
	p, err = l.Acquire(t.Context(), 5)
	require.NoError(t, err)
	require.Equal(t, 5, p.N())
	p, err = throttletest.New(throttletest.GrantUpTo(0)).AcquireUpTo(t.Context(), 5)
	require.NoError(t, err)
	require.Equal(t, 1, p.N())
}

func TestBlockWaitsForTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttletest.New(throttletest.Block())
		_, ok := l.TryAcquire(1)
		require.False(t, ok, "TryAcquire does not wait")

		cause := errors.New("cause")
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error, 1)
		go func() {
			_, err := l.Acquire(ctx, 1)
			got <- err
		}()
		synctest.Wait()
		require.Equal(t, 1, l.Waiting())
		cancel(cause)
		require.Equal(t, cause, <-got)
		require.Zero(t, l.Waiting())
		require.Equal(t, cause, l.Draws()[1].Err)
	})
}

func TestGrantOnLetsOneCallerPassForEachValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ch := make(chan struct{})
		l := throttletest.New(throttletest.GrantOn(ch))
		_, ok := l.TryAcquire(1)
		require.False(t, ok)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _, _ = l.Acquire(t.Context(), 1) })
		}
		for used := range 3 {
			synctest.Wait()
			require.Equal(t, used, l.Used())
			require.Equal(t, 5-used, l.Waiting())
			ch <- struct{}{}
		}
		close(ch)
		wg.Wait()
		require.Equal(t, 5, l.Used())
		_, ok = l.TryAcquire(1)
		require.True(t, ok)
	})
}

func TestCloseRefusesAndFailsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttletest.New(throttletest.Block(), throttletest.Grant())
		got := make(chan error, 1)
		go func() {
			_, err := l.Acquire(t.Context(), 1)
			got <- err
		}()
		synctest.Wait()
		l.Close()
		l.Close()
		require.ErrorIs(t, <-got, throttle.ErrClosed)
		_, err := l.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, throttle.ErrClosed)
		_, ok := l.TryAcquire(1)
		require.False(t, ok)
	})
}
