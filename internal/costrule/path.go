package costrule

import (
	"bytes"
	"slices"
	"strings"
)

// A Path says where in a JSON text a value stands: the names of objects and the indexes of lists, from 0.
type Path []string

// ParsePath reads a path such as items.0.size. ok is false for an empty step.
func ParsePath(text string) (p Path, ok bool) {
	p = strings.Split(text, ".")
	if slices.Contains(p, "") {
		return nil, false
	}
	return p, true
}

// Find returns what stands at a path in a JSON text. Where a name comes twice, the last one counts. ok is false for nothing
// and for null.
func Find(payload []byte, p Path) (found Value, ok bool) {
	s := Scanner{Keep: len(payload)}
	s.Value = func(v Value) {
		if s.At(p) {
			v.Raw = bytes.Clone(v.Raw)
			found, ok = v, v.Kind != Null
		}
	}
	_, _ = s.Write(payload) // never fails
	s.End()
	return found, ok
}
