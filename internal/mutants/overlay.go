package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// itself are the edits that tell this package of the overlay.
var itself = []edit{{"internal/mutants/mutants.go", []string{"-const overlaid = false", "+const overlaid = true"}}}

// switched returns the files of the product in the module at root as they are with the switches of all rules, by
// their names from root. The error names the rule and the file of an edit that does not fit.
func switched(root string, rules []Rule) (map[string]string, error) {
	sources, files := map[string]*source{}, map[string]string{}
	for _, r := range append([]Rule{{Name: "overlaid", edits: itself}}, rules...) {
		for _, e := range r.edits {
			s := sources[e.file]
			if s == nil {
				text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
				if err != nil {
					return nil, fmt.Errorf("rule %q: %w", r.Name, err)
				}
				s = newSource(string(text))
				sources[e.file] = s
			}
			if err := s.note(e); err != nil {
				return nil, fmt.Errorf("rule %q (internal/mutants/rules/%s.diff), file %s: %w", r.Name, r.Book, e.file, err)
			}
		}
	}
	for file, s := range sources {
		files[file] = s.text()
		if dir := path.Dir(file); dir != "internal/mutants" {
			files[dir+"/skip_mutants.go"] = fmt.Sprintf(skip, path.Base(dir))
		}
	}
	return files, nil
}

// skip is a file of each package that has rules. Its name is that of its folder.
const skip = `package %s

import "github.com/numaproj-contrib/numathrottle/internal/mutants"

func skip(rule string) bool { return mutants.Skip(rule) }
`

// WriteOverlay writes the files of the module at root into a folder, with the switches of all rules. It returns the
// name of the file there for "go test -overlay". The error names the rule and the file of an edit that does not fit.
func WriteOverlay(root, folder string) (name string, err error) {
	files, err := switched(root, rules)
	if err != nil {
		return "", err
	}
	if root, err = filepath.Abs(root); err != nil {
		return "", fmt.Errorf("root of the module: %w", err)
	}
	replace := map[string]string{}
	for file, text := range files {
		to := filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		if err = os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("overlay: %w", err)
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	name = filepath.Join(folder, "overlay.json")
	if err = os.WriteFile(name, text, 0o600); err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	return name, nil
}
