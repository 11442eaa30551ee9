package bounded

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCall(t *testing.T) {
	failure := errors.New("failure")
	for name, c := range map[string]struct {
		takes, within time.Duration
		err           error
		want          error
		took          time.Duration
	}{
		"in time":           {takes: time.Second, within: 2 * time.Second, took: time.Second},
		"in time, in vain":  {takes: time.Second, within: 2 * time.Second, err: failure, want: failure, took: time.Second},
		"too late":          {takes: time.Hour, within: 2 * time.Second, want: context.DeadlineExceeded, took: 2 * time.Second},
		"too late, in vain": {takes: time.Hour, within: 2 * time.Second, err: failure, want: context.DeadlineExceeded, took: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.within)
				defer cancel()
				began, ended := time.Now(), false
				value, err := Call(ctx, func() (int, error) {
					time.Sleep(c.takes) // it heeds no context
					ended = true
					return 7, c.err
				})
				require.Equal(t, c.want, err)
				require.Equal(t, c.took, time.Since(began))
				if c.took == c.takes {
					require.Equal(t, 7, value)
				} else {
					require.Zero(t, value)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				require.True(t, ended, "the call goes on")
			})
		})
	}
}

func TestAtOnce(t *testing.T) {
	for takes, want := range map[time.Duration]bool{0: true, Moment - 1: true, Moment + 1: false, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			reported, ok := AtOnce(func() string {
				time.Sleep(takes)
				return "connected"
			})
			require.Equal(t, want, ok, takes)
			require.Equal(t, min(takes, Moment), time.Since(began))
			require.Equal(t, want, reported == "connected", takes)
			time.Sleep(takes) // what was late ends, too
		})
	}
}
