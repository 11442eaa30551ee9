package throttle

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheRateKnowsNoTags: only the files of tags, of the Throttle, of the InFlight and of All name anything that a file of tags declares.
func TestTheRateKnowsNoTags(t *testing.T) {
	require.Empty(t, namesOfTags(t, ""))
	for broken, names := range map[string][]string{
		"func (t *rateLimiter) x() { _ = newTagSet(nil, nil) }":             {"newTagSet"},
		"func (t *rateLimiter) x(s *tagSet) { s.short.any(0); _ = s.part }": {"any", "part", "short", "tagSet"},
		"func (t *rateLimiter) x() { _ = t.seat.self.(*Throttle).tags }":    {"tags"},
		"func (t *rateLimiter) x() { t.reserver.coming() }":                 nil,
	} {
		require.Equal(t, names, namesOfTags(t, broken), broken)
	}
}

// namesOfTags returns the names of tags in files that should have none. more is the source of one such file.
func namesOfTags(t *testing.T, more string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	positions := token.NewFileSet()
	parse := func(path string, source any) *ast.File {
		f, err := parser.ParseFile(positions, path, source, parser.SkipObjectResolution)
		require.NoError(t, err)
		return f
	}
	files := []*ast.File{parse("more.go", "package throttle\n"+more)}
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			files = append(files, parse(path, nil))
		}
	}
	uses := map[*ast.Ident]types.Object{}
	config := types.Config{Importer: noPackages{}, Error: func(error) {}} // of other packages nothing is known, which is an error each time
	_, _ = config.Check("throttle", positions, files, &types.Info{Uses: uses})
	in := func(at token.Pos) string { return positions.Position(at).Filename }
	for name, is := range uses {
		switch from, to := in(name.Pos()), in(is.Pos()); {
		case from == "throttle.go" || from == "slotsource.go",
			slices.ContainsFunc([]string{"tag", "all", "inflight"}, func(of string) bool { return strings.HasPrefix(from, of) }):
		case strings.HasPrefix(to, "tag"), to == "throttle.go" && strings.HasPrefix(strings.ToLower(is.Name()), "tag"):
			if from != "more.go" {
				names = append(names, fmt.Sprintf("%s at %s", is.Name(), positions.Position(name.Pos())))
				continue
			}
			names = append(names, is.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noPackages is an importer that finds nothing.
type noPackages struct{}

func (noPackages) Import(string) (*types.Package, error) { return nil, errors.New("is not looked at") }
