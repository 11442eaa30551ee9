package costrule

import (
	"bytes"
	"slices"
	"strings"
)

// A Path is the place of a value in a JSON text: the names of objects and the indexes of lists, from 0.
type Path []string

// ParsePath parses a path such as items.0.size. ok is false for an empty step.
func ParsePath(text string) (p Path, ok bool) {
	p = strings.Split(text, ".")
	if slices.Contains(p, "") {
		return nil, false
	}
	return p, true
}

// A Place is a place to look up in JSON texts, and the value found there.
type Place struct {
	Path Path

	value Value
	times int
}

// Take checks a value that s has reached.
func (p *Place) Take(s *Scanner, v Value) {
	if s.At(p.Path) {
		v.Raw = bytes.Clone(v.Raw)
		p.value = v
		p.times++
	}
}

// Found returns the value in the text that s has read so far. ok is false for no value and for null. fault says why the value is uncertain,
// else it is empty: the text is broken, or there are two values, and a service may use either.
func (p *Place) Found(s *Scanner) (v Value, ok bool, fault string) {
	switch {
	case s.Broken():
		return Value{}, false, "(no valid JSON, or too deep)"
	case p.times > 1:
		return Value{}, false, "(more than one)"
	}
	return p.value, p.times > 0 && p.value.Kind != Null, ""
}

// Find is Found for a whole text. An empty one has no value.
func Find(payload []byte, p Path) (found Value, ok bool, fault string) {
	at := Place{Path: p}
	s := Scanner{Keep: max(len(payload), 1)}
	s.Value = func(v Value) { at.Take(&s, v) }
	_, _ = s.Write(payload) // never fails
	s.End()
	return at.Found(&s)
}
