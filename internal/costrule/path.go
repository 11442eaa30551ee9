package costrule

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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

// Plain returns a name in one form for all spellings that a service may accept: any case, snake and camel case. A leading underscore remains:
// _id is another name than id.
func Plain(name string) string {
	begun := false
	return strings.Map(func(r rune) rune {
		if begun = begun || !isHyphen(r); begun && isHyphen(r) {
			return -1
		}
		return plainRune(r)
	}, name)
}

// Names returns the set of some names, separated by blanks, in the form of Plain.
func Names(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[Plain(name)] = true
	}
	return set
}

func isHyphen(r rune) bool { return r == '_' || r == '-' }

// plainRune returns a character in lower case. Services in Go accept a long s for an s.
func plainRune(r rune) rune {
	if r == 'ſ' {
		return 's'
	}
	return unicode.ToLower(r)
}

// isPlain reports whether the form of Plain of a name is plain.
func isPlain(name []byte, plain string) bool {
	begun := false
	for _, r := range string(name) { // copies nothing
		if begun = begun || !isHyphen(r); begun && isHyphen(r) {
			continue
		}
		want, n := utf8.DecodeRuneInString(plain)
		if n == 0 || want != plainRune(r) {
			return false
		}
		plain = plain[n:]
	}
	return plain == ""
}

// A Place is a place to look up in JSON texts, and the value found there.
type Place struct {
	Path Path

	plain Path // with names in the form of Plain
	value Value
	times int
	// spelled is a value at a path whose names differ in their spelling: services in Go read it, others do not.
	spelled      Value
	timesSpelled int
	// around has which of the objects and lists around the value were there.
	around []bool
	twice  bool // one of them was there twice
}

// Take checks a value that s has reached.
func (p *Place) Take(s *Scanner, v Value) {
	depth := s.Depth()
	if depth == 0 || depth > len(p.Path) {
		return
	}
	if p.plain == nil {
		p.around = make([]bool, len(p.Path))
		for _, name := range p.Path {
			p.plain = append(p.plain, Plain(name))
		}
	}
	exact, spelled := s.match(p.Path[:depth], p.plain[:depth])
	switch {
	case exact && depth < len(p.Path):
		p.twice = p.twice || p.around[depth]
		p.around[depth] = true
	case depth < len(p.Path):
	case exact:
		p.value = v.clone()
		p.times++
	case spelled:
		p.spelled = v.clone()
		p.timesSpelled++
	}
}

// Found returns the value in the text that s has read so far. ok is false for no value and for null. fault says why the value is uncertain,
// if it is: the text is broken, or a service may use another value. Then ok is false, and v is the value that most services would use.
func (p *Place) Found(s *Scanner) (v Value, ok bool, fault string) {
	switch {
	case s.Broken():
		return Value{}, false, "(no valid JSON, or too deep)"
	case p.times > 1 || p.twice:
		return p.value, false, "(more than one)"
	case p.times == 0 && p.timesSpelled > 0:
		return p.spelled, false, "(in another spelling of its name)"
	case p.timesSpelled > 1, p.timesSpelled == 1 && (p.spelled.Kind != p.value.Kind || !bytes.Equal(p.spelled.Raw, p.value.Raw)):
		return p.value, false, "(another one in another spelling of its name)"
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
