package config

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile is the maximum size of a file, in bytes.
const maxFile = 1 << 20

// readFile returns the content of a file of a reasonable size.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is longer than %d bytes", maxFile)}
	}
	return content, err
}

// ReadFile returns the content of a file that is neither empty nor large. Errors name the file, and do not show its content.
func ReadFile(path string) ([]byte, error) {
	content, err := readFile(path)
	if err == nil && strings.TrimSpace(string(content)) == "" {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("it is empty")}
	}
	return content, err
}

// withoutPath returns an error without its path, for a message that has the path already.
func withoutPath(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// loadFile sets settings from a YAML file: one mapping from keys to values.
func loadFile(settings []setting, o others, name string, r *Reading) {
	if name == "" {
		r.found(&FieldError{Field: FileVariable, Problem: "is empty", Allowed: "the path of a YAML file; unset it for none"})
		return
	}
	content, err := readFile(name)
	if err != nil {
		r.found(&FieldError{Field: FileVariable, Problem: fmt.Sprintf("is %s, which cannot be read: %v", quote(name), withoutPath(err))})
		return
	}
	readContent(settings, o, name, content, r)
}

// readContent is loadFile for the content of the file.
func readContent(settings []setting, o others, name string, content []byte, r *Reading) {
	root, fault := parseYAML(content, FileVariable)
	switch {
	case fault != nil:
	case root == nil:
		return // empty, or only comments
	case root.Kind != yaml.MappingNode:
		fault = &BlockFault{FileVariable, "holds " + kindName(root), "settings as `name: value`", root.Line}
	}
	if fault != nil {
		r.found(fault.in(name))
		return
	}
	known := keysOf(settings)
	entries, faults := Entries(root, "", math.MaxInt, "")
	for _, e := range entries {
		if len(faults) > maxFaults {
			break
		}
		if i := slices.Index(known, e.Name); i >= 0 {
			r.from(e.Name, at(name, e.Line))
			if n := behindAlias(e.Value); n.Kind == yaml.ScalarNode { // also the text of a Block
				faults = append(faults, settings[i].putNode(n, e.Name)...)
			} else {
				faults = append(faults, settings[i].setNode(n, e.Name)...)
			}
			continue
		}
		i := nearest(e.Name, known)
		if o.leave(keyAt(known, i)) {
			continue
		}
		problem := "is not a setting"
		if slices.Contains(o.without, e.Name) {
			problem = notTaken
		}
		if i >= 0 {
			r.means(known[i])
			problem += "; did you mean " + known[i] + "?"
		} else {
			problem += "; there are " + strings.Join(known, ", ")
		}
		faults = append(faults, BlockFault{Field: fullName("", e.Name), Problem: problem, Line: e.Line})
	}
	for _, f := range firstFaults(faults, FileVariable) {
		if f.Field == "" {
			f.Field = FileVariable
		}
		r.found(f.in(name))
	}
}
