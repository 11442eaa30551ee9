package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

func TestPause(t *testing.T) {
	store := memstore.New()
	join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
	for _, c := range []struct {
		want string
		args []string
	}{
		{`^p: not paused\n$`, []string{"pause", "show"}},
		{`^p: paused until it is cleared: at night\n$`, []string{"pause", "set", "--reason=at night"}},
		{`^p: paused until it is cleared: at night\n$`, []string{"pause", "set", "--for=1m"}}, // the later end counts
		{`^p: paused until it is cleared: at night\np: tag gpt-4 paused until \S+Z\n$`, []string{"pause", "set", "--for=10m", "--tag=gpt-4"}},
		{
			`^p: paused until it is cleared: at night\np: tag gpt-4 paused until \S+Z by ann: tests\n$`,
			[]string{"pause", "set", "--for=20m", "--tag=gpt-4", "--by=ann", "--reason=tests"},
		},
		{
			`^{"pool":"p","paused":\[{"reason":"at night"},{"tag":"gpt-4","until":"\S+Z","by":"ann","reason":"tests"}\]}\n$`,
			[]string{"pause", "get", "-o", "json"},
		},
		{`^p: ended: paused until .*at night\np: tag gpt-4 paused until \S+Z by ann: tests\n$`, []string{"resume"}},
		{`^p: nothing was ended: the pool was not paused\np: tag gpt-4 paused until`, []string{"resume"}},
		{`^p: ended: tag gpt-4 paused until \S+Z by ann: tests\np: not paused\n$`, []string{"pause", "clear", "--tag", "gpt-4"}},
		{`^p: nothing was ended: tag gpt-4 was not paused\np: not paused\n$`, []string{"resume", "--tag", "gpt-4"}},
	} {
		out, err := tm.run(t, c.args...)
		require.NoError(t, err, c.args)
		require.Regexp(t, c.want, out, c.args)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"for is \"soon\" (--for), allowed: a duration, `1ms` to `744h`", []string{"pause", "set", "--for=soon"}},
		{"(--for), allowed: a duration, `1ms` to `744h`", []string{"pause", "set", "--for=745h"}},
		{"nobody", []string{"pause", "set", "--pool=nobody"}},
	} {
		_, err := tm.run(t, c.args...)
		require.ErrorContains(t, err, c.want)
	}
}
