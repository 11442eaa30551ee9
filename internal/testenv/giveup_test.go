package testenv

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// recorder is a testing.TB that only notes how a test was given up.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestGiveUp(t *testing.T) {
	missing := fmt.Errorf("some-server is %w: install it", servers.ErrNotInstalled)
	for _, test := range []struct {
		name    string
		require string
		err     error
		skips   bool
	}{
		{name: "a missing server skips", require: "", err: missing, skips: true},
		{name: "a missing server fails where every store is required", require: "1", err: missing, skips: false},
		{name: "a server that does not start fails", require: "", err: errors.New("some-server is broken"), skips: false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(RequireStores, test.require)
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				giveUp(r, test.err)
			}()
			<-done
			if test.skips {
				require.Contains(t, r.skipped, test.err.Error())
				require.Empty(t, r.failed)
			} else {
				require.Contains(t, r.failed, test.err.Error())
				require.Empty(t, r.skipped)
			}
		})
	}
}
