package limit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every reason that the package declares is counted by itself.
func TestEveryReasonIsCounted(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	require.NoError(t, err)
	var declared []Reason
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value) //nolint:errcheck,forcetypeassert // it panics, and the test fails
			require.NoError(t, err)
			declared = append(declared, Reason(text))
		}
		return true
	})
	require.ElementsMatch(t, declared, Reasons())
	require.Equal(t, ReasonOther, Reasons()[Reason("a sharer's own").Index()])
}

func TestFinalReasons(t *testing.T) {
	for _, r := range Reasons() {
		require.Equal(t, r == ReasonClosed || r == ReasonTooLarge, r.Final(), r)
		require.True(t, r.Listed(), r)
	}
	require.False(t, Reason("a sharer's own").Listed())
	require.False(t, Reason("a sharer's own").Final())
}
