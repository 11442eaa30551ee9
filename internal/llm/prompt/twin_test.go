package prompt_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
)

// A twin is a body that is known as a whole: an object, a list, a text, or a literal.
type twin struct {
	names   []string // of an object, whose values are items
	items   []twin
	list    bool
	isText  bool
	content string // of a text or literal
}

var twinRoles = struct{ unread, marks, schemas, inputs []string }{
	unread: []string{"model", "metadata", "stop", "tool_choice"}, marks: []string{"role", "type", "id", "model", "format"},
	schemas: []string{"tools", "args", "response", "format", "input", "json"}, inputs: []string{"input", "inputs"},
}

const deepestTwin = 6

// randomTwin makes a body whose names have roles.
func randomTwin(r *rand.Rand, deep int) (t twin) {
	names := slices.Concat(twinRoles.unread, twinRoles.marks, twinRoles.schemas, twinRoles.inputs, []string{"content", "text", "name", "é"})
	kind := r.IntN(6)
	switch deep {
	case 0:
		kind = 5
	case deepestTwin:
		kind = r.IntN(4)
	}
	switch {
	case kind < 3:
		for range r.IntN(4) {
			t.names = append(t.names, names[r.IntN(len(names))])
			t.items = append(t.items, randomTwin(r, deep-1))
		}
		return t
	case kind == 3:
		t.list = true
		for range r.IntN(4) {
			t.items = append(t.items, randomTwin(r, deep-1))
		}
		return t
	}
	literals := []string{"1", "-2.5", "123456", "true", "false", "null"}
	if t.content = literals[r.IntN(len(literals))]; deep > 0 || r.IntN(2) == 0 {
		t.content, t.isText = strings.Repeat("hé\n", r.IntN(4)), true
	}
	return t
}

func (t twin) isContainer() bool { return t.list || t.content == "" && !t.isText }

func (t twin) isNumber() bool { return !t.isText && strings.ContainsAny(t.content, "0123456789") }

func (t twin) String() string {
	var parts []string
	for i, item := range t.items {
		text := item.String()
		if !t.list {
			text = fmt.Sprintf("%q:%s", t.names[i], text)
		}
		parts = append(parts, text)
	}
	switch {
	case t.list:
		return "[" + strings.Join(parts, ",") + "]"
	case t.isContainer():
		return "{" + strings.Join(parts, ",") + "}"
	case t.isText:
		return `"` + strings.ReplaceAll(t.content, "\n", `\n`) + `"`
	}
	return t.content
}

// add adds to a size what a model reads of a value. It counts as a part of a schema, with its syntax, if it is in one.
func (t twin) add(to *prompt.Size, depth int, name string, inList, inSchema, embeds bool) {
	is := func(names []string) bool { return slices.Contains(names, name) }
	if depth == 1 && name == "model" && t.isText {
		to.Model = t.content
	}
	isInput := embeds && is(twinRoles.inputs)
	if isInput && depth == 2 && inList && !t.isNumber() {
		to.Inputs++
	}
	opens := !inSchema && !inList && t.isContainer() && is(twinRoles.schemas) && (depth > 1 || name != "input")
	isMark := depth > 1 && !inList && !inSchema && is(twinRoles.marks)
	if !opens && (isMark || depth == 1 && is(twinRoles.unread)) {
		return
	}
	if inSchema {
		n := 1
		if !inList {
			n += len(name) + 3
		}
		if t.isContainer() || t.isText {
			n += 2
		} else {
			n += len(t.content)
		}
		to.Bytes, to.Chars = to.Bytes+int64(n), to.Chars+int64(n)
	}
	switch {
	case t.isText:
		to.Bytes, to.Chars = to.Bytes+int64(len(t.content)), to.Chars+int64(utf8.RuneCountInString(t.content))
	case t.isNumber() && isInput && depth >= 2:
		to.Tokens++
	}
	for i, item := range t.items {
		own := name
		if !t.list {
			own = t.names[i]
		}
		item.add(to, depth+1, own, t.list, inSchema || opens, embeds)
	}
}

// The size of a body is that of a simple count over all of its values, whatever the body, and in whichever pieces it comes.
func TestAsASimpleCount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		body := randomTwin(r, deepestTwin)
		text := body.String()
		for _, path := range []string{"/v1/chat/completions", "/v1/embeddings"} {
			embeds := strings.Contains(path, "embed")
			want := prompt.Size{Silent: embeds}
			body.add(&want, 0, "", false, false, embeds)
			want.Inputs = max(want.Inputs, 1)
			got := read(t, path, "application/json", text, r.IntN(len(text)+1))
			got.Feed([]byte(text)[len(text)-int(got.rest):])
			require.Equal(t, want, got.Size(0), "%s %s", path, text)
		}
	}
}
