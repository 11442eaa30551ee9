package meta

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// most is how many exported names each public package has at most: constants, variables, types and functions, no methods. A name that
// nobody outside needs belongs into an internal package; one that somebody needs is worth a higher number here.
var most = map[string]int{
	".": 15, "pkg/consensus": 28, "pkg/consensus/driver": 89, "pkg/consensus/memstore": 4, "pkg/consensus/natsstore": 11,
	"pkg/consensus/redisstore": 8, "pkg/consensus/storetest": 2, "pkg/handlertest": 10, "pkg/limit": 45, "pkg/llm": 8, "pkg/mapper": 25, "pkg/open": 15,
	"pkg/open/nats": 0, "pkg/open/redis": 0, "pkg/open/telemetry": 0, "pkg/operate": 14, "pkg/otelthrottle": 10, "pkg/sinker": 22,
	"pkg/sourcer": 29, "pkg/throttle": 89, "pkg/throttle/grpcthrottle": 10, "pkg/throttle/httpthrottle": 42, "pkg/throttle/throttletest": 13,
}

func TestThePublicPagesAreSmall(t *testing.T) {
	root := "." // the tests of this package run in the root of the repository
	found := map[string]int{".": 0}
	count := func(path string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		dir, err := filepath.Rel(root, filepath.Dir(path))
		require.NoError(t, err)
		found[filepath.ToSlash(dir)] += exportedNames(file)
	}
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && d.Name() == "clienttest" {
			return fs.SkipDir // a module of its own
		}
		if strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	}))
	for _, path := range files {
		if !strings.HasSuffix(path, "_test.go") {
			count(path)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(most)), slices.Collect(maps.Keys(found)), "the public packages")
	for dir, n := range found {
		require.LessOrEqual(t, n, most[dir], "exported names of %s", dir)
	}
}

// exportedNames counts the exported names that a file declares at its top level.
func exportedNames(file *ast.File) (n int) {
	add := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name)
				case *ast.ValueSpec:
					add(spec.Names...)
				}
			}
		}
	}
	return n
}
