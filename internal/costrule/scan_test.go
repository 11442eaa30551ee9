package costrule_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

func TestFind(t *testing.T) {
	const doc = ` {"tenant_id" : 42, "a": {"b": "x\"y", "b.c": 1, "": 2}, "list": [0, {"size": 7.5}, [1, "deep"]], "no": null, "yes":true,
		"ta\u0067": "esc\u0061ped", "twice": 1, "o": {}, "l": [], "neg": -3, "twice": 2, "last": 9}`
	for path, want := range map[string]string{
		"tenant_id": "42", "a.b": `x"y`, "list.0": "0", "list.1.size": "7.5", "list.2.1": "deep", "yes": "true", "tag": "escaped", "twice": "2",
		"neg": "-3", "last": "9",
		"o": "", "l": "", "a": "", "no": "", "b": "", "list.3": "", "list.x": "", "list.-1": "", "a.0": "", "list.1": "", "size": "",
	} {
		p, ok := costrule.ParsePath(path)
		require.True(t, ok)
		found, _ := costrule.Find([]byte(doc), p)
		require.Equal(t, want, found.Text(), path)
	}
	for _, path := range []string{"", ".a", "a.", "a..b"} {
		_, ok := costrule.ParsePath(path)
		require.False(t, ok, path)
	}
	_, ok := costrule.Find([]byte(doc), costrule.Path{"no"})
	require.False(t, ok, "null is nothing")
	found, ok := costrule.Find([]byte("[3]"), costrule.Path{"0"})
	require.True(t, ok)
	require.Equal(t, "3", found.Text())
	for _, doc := range []string{"", "no json", "5", `{"a"`, `{"a":`, `}{]`, `{"a":{"b":1}`, `["a":1]`} {
		_, ok := costrule.Find([]byte(doc), costrule.Path{"a"})
		require.Equal(t, doc == `{"a":{"b":1}`, ok, doc)
	}
	costrule.Find([]byte(strings.Repeat("[", 100_000)), costrule.Path{"a"})
}

func TestNumbersOfJSON(t *testing.T) {
	for doc, want := range map[string]int{`5`: 5, `"5"`: 5, `4.2`: 5, `" 5e2 "`: 500, `99999999999`: costrule.Ungrantable} {
		found, ok := costrule.Find([]byte(`{"a":`+doc+`}`), costrule.Path{"a"})
		require.True(t, ok)
		n, ok := found.Number()
		require.True(t, ok, doc)
		require.Equal(t, want, n, doc)
	}
	for _, doc := range []string{`-1`, `""`, `"x"`, `true`, `{}`, `[1]`, `NaN`, `Infinity`, `0x10`} {
		found, ok := costrule.Find([]byte(`{"a":`+doc+`}`), costrule.Path{"a"})
		require.True(t, ok, doc)
		_, ok = found.Number()
		require.False(t, ok, doc)
	}
}

// However a text is cut, the scanner tells the same.
func TestTheScannerReadsPieces(t *testing.T) {
	const doc = `{"a":[1,{"b":"x\"y\\","c":-2.5e3},true],"d":{"e":null},"data":"AAAA\/+==\n"} `
	scan := func(size int) (told []string) {
		s := costrule.Scanner{Keep: 100}
		s.Value = func(v costrule.Value) {
			told = append(told, fmt.Sprint(s.Depth(), s.Key(0), "/", s.Key(1), string(rune(v.Kind)), string(v.Raw), v.Len, v.Odd))
		}
		for rest := doc; rest != ""; {
			n := min(size, len(rest))
			_, _ = s.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		s.End()
		return told
	}
	whole := scan(len(doc))
	require.Len(t, whole, 10)
	require.Contains(t, whole, `1data/"`+`"AAAA\/+==\n"`+`11 0`)
	for size := 1; size < 20; size++ {
		require.Equal(t, whole, scan(size), size)
	}
}

// What encoding/json finds in a valid text, the scanner finds, too.
func FuzzFind(f *testing.F) {
	for _, doc := range []string{`{"a":{"b":[1,"x"]}}`, `{"a":1}`, `{"a":"\ud83d\ude00"}`, `[]`, `{"a":[[[]]]}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		found, ok := costrule.Find(doc, costrule.Path{"a"})
		var object map[string]json.RawMessage
		if json.Unmarshal(doc, &object) != nil {
			return
		}
		raw, want := object["a"]
		if want = want && string(raw) != "null"; want != ok && strings.Count(string(doc), `[`)+strings.Count(string(doc), `{`) < 1000 {
			t.Fatalf("%q: found %v", doc, ok)
		}
		var text string
		if ok && json.Unmarshal(raw, &text) == nil && found.Text() != text {
			t.Fatalf("%q: %q", doc, found.Text())
		}
	})
}
