package admission_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// That dropped messages cost tokens after all is told once, where the limit gives none back.
func TestExemptWarnsOnceWhereItHasNoEffect(t *testing.T) {
	for limit, want := range map[throttle.Limit]int{{Max: 100}: 0, {Max: 100, Strict: true}: 1} {
		synctest.Test(t, func(t *testing.T) {
			l, err := throttle.New(limit)
			require.NoError(t, err)
			defer func() { require.NoError(t, l.Close()) }()
			var log bytes.Buffer
			g := &admission.Admitter{Limiter: l, Log: slog.New(slog.NewTextHandler(&log, nil))}
			for range 3 {
				p, err := g.Admit(t.Context(), "", 1)
				require.NoError(t, err)
				g.Exempt(p)
				g.Exempt(throttle.Permit{})
				time.Sleep(2 * time.Minute)
			}
			require.Equal(t, want, strings.Count(log.String(), "ExemptDropped has no effect"), log.String())
			require.Equal(t, int64(3*(1-want)), l.Status().Returned)
		})
	}
}
