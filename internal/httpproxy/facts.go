package httpproxy

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// A message is a request as rules see it.
type message struct {
	req *http.Request
	// host is where it goes.
	host string
	// body is what was read of it, and whole tells that this is all.
	body  []byte
	whole bool
	// paths are the fields of the body that rules ask for, and estimates tells that one is an estimate of its tokens.
	paths     []costrule.Path
	estimates bool

	read *facts // nil: not read yet
}

// length is how long the body is, or as far as it is known.
func (m *message) length() int64 { return max(m.req.ContentLength, int64(len(m.body))) }

// Facts are what rules know of a body, which is read once.
type facts struct {
	scanner costrule.Scanner
	values  map[string]costrule.Value // by path
	llm     *llm                      // nil: not asked for
}

// keptOfValue is how much of a field is kept: more than the longest tag, in any spelling.
const keptOfValue = 2048

func (m *message) facts() *facts {
	if m.read != nil {
		return m.read
	}
	f := &facts{values: map[string]costrule.Value{}}
	f.scanner.Keep = keptOfValue
	if m.estimates {
		f.llm = newLLM(m, &f.scanner)
	}
	f.scanner.Value = func(v costrule.Value) {
		for _, p := range m.paths {
			if f.scanner.At(p) {
				v := v
				v.Raw = bytes.Clone(v.Raw)
				f.values[strings.Join(p, ".")] = v
			}
		}
		if f.llm != nil {
			f.llm.value(v)
		}
	}
	if f.llm != nil {
		f.llm.feed(m.body)
	} else {
		_, _ = f.scanner.Write(m.body) // never fails
	}
	if m.whole {
		f.scanner.End()
	}
	m.read = f
	return f
}

// field returns what stands at a path in a body of JSON, as far as it was read. ok is false for nothing and null.
func (m *message) field(p costrule.Path) (v costrule.Value, ok bool) {
	if !slices.ContainsFunc(m.paths, func(q costrule.Path) bool { return slices.Equal(p, q) }) {
		m.paths, m.read = append(m.paths, p), nil
	}
	v, ok = m.facts().values[strings.Join(p, ".")]
	return v, ok && v.Kind != costrule.Null
}
