package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// Scripts tell wrong usage, which no second try mends, by the exit code, also that of quotas.
func TestWrongUsageOfQuotas(t *testing.T) {
	tm := newTerminal(memstore.New(), "NUMATHROTTLE_POOL=p")
	for args, want := range map[string]string{
		"quota get":                    "TAG is missing",
		"quota clear a b":              "one argument too many",
		"quota get --other a":          "allowed: one of them",
		"quota set --total 5":          "TAG is missing",
		"quota set a":                  "nothing is to be set",
		"quota set a --total=":         "--total is empty",
		"quota set a --total x":        `--total is "x"`,
		"quota set a --total 5 --no x": "no is no flag",
		"quota set a --budgets {":      "--budgets",
	} {
		_, err := tm.run(t, strings.Fields(args)...)
		require.ErrorContains(t, err, want, args)
		require.Equal(t, ExitUsage, ExitCode(err), "%s: %v", args, err)
	}
}
