package operators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A listed is what "go list" says of a package.
type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles                       []string
	DepOnly                       bool
}

// A Set is the mutants of some packages, and the files that have their switches.
type Set struct {
	Mutants []Mutant
	files   map[string]string // by the path of the file that they replace
}

// Load makes the mutants of packages, which are named as for the go command in the module at root. It compiles their imports.
func Load(ctx context.Context, root string, packages ...string) (*Set, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("root of the module: %w", err)
	}
	all, err := list(ctx, root, packages)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	s := &Set{files: map[string]string{}}
	for _, p := range all {
		if p.DepOnly {
			continue
		}
		if err := s.add(root, &p, fset, from); err != nil {
			return nil, fmt.Errorf("package %s: %w", p.ImportPath, err)
		}
	}
	return s, nil
}

// list returns packages and all that they import.
func list(ctx context.Context, root string, packages []string) (all []listed, err error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles,DepOnly"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) { //nolint:musttag // the go command's own names
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

// add adds the mutants of a package.
func (s *Set) add(root string, p *listed, fset *token.FileSet, from types.Importer) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: from}).Check(p.ImportPath, fset, files, info); err != nil {
		return fmt.Errorf("types: %w", err)
	}
	for i, f := range files {
		path := filepath.Join(p.Dir, p.GoFiles[i])
		name, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("file %s: %w", path, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		rewritten, list := rewrite(filepath.ToSlash(name), text, fset, f, info, len(s.Mutants)+1)
		s.Mutants = append(s.Mutants, list...)
		s.files[path] = rewritten
	}
	s.files[filepath.Join(p.Dir, "mutant_switches.go")] = switches(p.Name)
	return nil
}

// WriteOverlay writes the files with the switches into a folder, and returns the name of the file there for "go test -overlay".
func (s *Set) WriteOverlay(folder string) (string, error) {
	replace := map[string]string{}
	for path, text := range s.files {
		to := filepath.Join(folder, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("overlay: %w", err)
		}
		replace[path] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	name := filepath.Join(folder, "overlay.json")
	if err = os.WriteFile(name, text, 0o600); err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	return name, nil
}
