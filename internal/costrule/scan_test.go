package costrule_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

func TestFind(t *testing.T) {
	const doc = ` {"tenant_id" : 42, "a": {"b": "x\"y", "b.c": 1, "": 2}, "list": [0, {"size": 7.5}, [1, "deep"]], "no": null, "yes":true,
		"ta\u0067": "esc\u0061ped", "o": {}, "l": [], "neg": -3, "nan": [NaN, -Infinity], "last": 9}`
	for path, want := range map[string]string{
		"tenant_id": "42", "a.b": `x"y`, "list.0": "0", "list.1.size": "7.5", "list.2.1": "deep", "yes": "true", "tag": "escaped",
		"neg": "-3", "last": "9",
		"o": "", "l": "", "a": "", "no": "", "b": "", "list.3": "", "list.x": "", "list.-1": "", "a.0": "", "list.1": "", "size": "",
	} {
		p, ok := costrule.ParsePath(path)
		require.True(t, ok)
		found, _, fault := costrule.Find([]byte(doc), p)
		require.Empty(t, fault)
		require.Equal(t, want, found.Text(), path)
	}
	for _, path := range []string{"", ".a", "a.", "a..b"} {
		_, ok := costrule.ParsePath(path)
		require.False(t, ok, path)
	}
	_, ok, fault := costrule.Find([]byte(doc), costrule.Path{"no"})
	require.False(t, ok, "null is nothing")
	require.Empty(t, fault)
	for _, doc := range []string{"[3]", "\ufeff[3]", "\ufeff [3]\n"} {
		found, ok, _ := costrule.Find([]byte(doc), costrule.Path{"0"})
		require.True(t, ok, doc)
		require.Equal(t, "3", found.Text())
	}
	for _, doc := range []string{"", " \n", "5", `"a"`, "[]", "{}", " {} ", "\ufeff"} {
		_, ok, fault := costrule.Find([]byte(doc), costrule.Path{"a"})
		require.False(t, ok, doc)
		require.Empty(t, fault, doc)
	}
}

// Of a text that is no JSON, or that others may read in another way, nobody can tell what stands in it.
func TestTextsThatNobodyCanRead(t *testing.T) {
	deep := func(n int) string { return `{"a":1,"b":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	utf16 := func(text string) string { return strings.Join(strings.Split(text, ""), "\x00") }
	for _, doc := range []string{
		"no json", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `}{]`, `{"a":{"b":1}`, `["a":1]`,
		`{"a" 1}`, `{"a":1 2}`, `{"a":1,}`, `{,"a":1}`, `{"a":1}]`,
		`{"a":1}}`, `{"a":1} {"a":2}`, `{"a":1}x`, `{'a':1}`, `{a:1}`, `{"a":01}`, `{"a":+1}`, `{"a":tru}`, `{"a":1}/* */`, `[1,]`, `[,1]`,
		`[1 2]`, `[1}`, `{"a":1]`,
		`{"a":"x`, `{"a":"x}`, `a=1&b=2`, `{"a":}`, `{:1}`, `{"a"::1}`, `{"a":1:2}`, "\x1f\x8b\x08\x00", utf16(`{"a":1}`),
		"\xff\xfe" + utf16(`{"a":1}`), "\x00" + utf16(`{"a":1}`),
		`{"a":1,"a":1}`, `{"a":1,"\u0061":5000}`, `{"a":5000,"a":null}`, deep(1000), deep(100_000), strings.Repeat("[", 100_000), `{"a":1}` + "\x00",
	} {
		_, ok, fault := costrule.Find([]byte(doc), costrule.Path{"a"})
		require.False(t, ok, "%.60q", doc)
		require.NotEmpty(t, fault, "%.60q", doc)
	}
	_, ok, fault := costrule.Find([]byte(deep(999)), costrule.Path{"a"})
	require.True(t, ok)
	require.Empty(t, fault)
}

func TestNumbersOfJSON(t *testing.T) {
	for doc, want := range map[string]int{`5`: 5, `"5"`: 5, `4.2`: 5, `" 5e2 "`: 500, `99999999999`: costrule.Ungrantable} {
		found, ok, _ := costrule.Find([]byte(`{"a":`+doc+`}`), costrule.Path{"a"})
		require.True(t, ok)
		n, ok := found.Number()
		require.True(t, ok, doc)
		require.Equal(t, want, n, doc)
	}
	for _, doc := range []string{`-1`, `""`, `"x"`, `true`, `{}`, `[1]`, `NaN`, `Infinity`, `-Infinity`} {
		found, ok, _ := costrule.Find([]byte(`{"a":`+doc+`}`), costrule.Path{"a"})
		require.True(t, ok, doc)
		_, ok = found.Number()
		require.False(t, ok, doc)
	}
}

// write writes a text in pieces.
func write(s *costrule.Scanner, text string, size int) {
	for ; len(text) > size; text = text[size:] {
		_, _ = s.Write([]byte(text[:size]))
	}
	_, _ = s.Write([]byte(text))
}

// However a text is cut, the scanner tells the same: depth, names from the inside, source, length, bytes that are not base64, in a list.
func TestTheScannerReadsPieces(t *testing.T) {
	const doc = `{"a":[1,{"b":"x\"y\\","c":-2.5e3},true],"d":{"e":null},"data":"AAAA\/+==\n","odd":"\b\f\r\t\u0041. é"} `
	want := []string{
		`0 //  0 0 false`, `1 a//  0 0 false`, `2 a// 1 1 0 true`, `2 a//  0 0 true`, `3 b/a/ "x\"y\\" 6 2 false`, `3 c/a/ -2.5e3 6 0 false`,
		`2 a// true 4 0 true`, `1 d//  0 0 false`, `2 e/d/ null 4 0 false`, `1 data// "AAAA\/+==\n" 11 0 false`,
		`1 odd// "\b\f\r\t\u0041. é" 18 8 false`,
	}
	for size := 1; size <= len(doc); size++ {
		var reported []string
		s := costrule.Scanner{Keep: 100}
		s.Value = func(v costrule.Value) {
			reported = append(reported, fmt.Sprintf("%d %s/%s/%s %s %d %d %v", s.Depth(), s.Key(0), s.Key(1), s.Key(2), v.Raw, v.Len, v.Odd, s.InList()))
		}
		write(&s, doc, size)
		s.End()
		require.Equal(t, want, reported, size)
	}
	require.Equal(t, 4, costrule.Odd([]byte("a. é/+")))
}

// Only a string that is a value, and not yet at its end, is an unfinished one.
func TestUnfinishedStrings(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"xé`: `"xé`, `["x","y`: `"y`, `["`: `"`, `{"a`: "", `{"a":`: "", `{"a":"x"`: "", `["x",1`: "", `[1`: "", "": "",
	} {
		s := costrule.Scanner{Keep: 100}
		write(&s, text, 1)
		v, ok := s.Unfinished()
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, string(v.Raw), text)
			require.Equal(t, len(want)-len(`"`), v.Bytes, text)
		}
	}
}

// What encoding/json finds in a text, the scanner finds, too, and nothing in one that encoding/json does not take.
func FuzzFind(f *testing.F) {
	for _, doc := range []string{
		`{"a":{"b":[1,"x"]}}`, `{"a":1}`, `{"a":"\ud83d\ude00"}`, `[]`, `{"a":[[[]]]}`, `{"a":1,}`, `{"a":1}{}`,
		`{"a":1,"a":2}`, "\ufeff{}", `{"a":NaN}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		found, ok, fault := costrule.Find(doc, costrule.Path{"a"})
		var object map[string]json.RawMessage
		if !json.Valid(doc) {
			odd := func(r rune) bool { return r < ' ' || r > '~' || r == '\\' } // what is in strings is not checked, and there may be a mark
			python := bytes.Contains(doc, []byte("NaN")) || bytes.Contains(doc, []byte("Infinity"))
			if fault == "" && len(bytes.TrimSpace(doc)) > 0 && !python && !bytes.ContainsFunc(doc, odd) {
				t.Fatalf("%q is none: found %v", doc, ok)
			}
			return
		}
		if json.Unmarshal(doc, &object) != nil || fault != "" {
			return
		}
		raw, want := object["a"]
		if want = want && string(raw) != "null"; want != ok {
			t.Fatalf("%q: found %v", doc, ok)
		}
		var text string
		if ok && json.Unmarshal(raw, &text) == nil && found.Text() != text {
			t.Fatalf("%q: %q", doc, found.Text())
		}
	})
}

// A service may read a field in another spelling, or the second of two objects of one name: its value is uncertain, unless all are the same.
func TestFieldsThatServicesReadDifferently(t *testing.T) {
	path := costrule.Path{"options", "max_tokens"}
	for doc, want := range map[string]string{ // what most services read
		`{"options":{"Max_Tokens":5}}`:                        "5",
		`{"options":{"maxTokens":5}}`:                         "5",
		`{"OPTIONS":{"max_tokens":5}}`:                        "5",
		`{"options":{"max_tokens":1,"max-tokens":5}}`:         "1",
		`{"options":{"max_to\u212aens":5,"max_tokens":1}}`:    "1",
		`{"options":{"max_tokens":1,"max_tokens":5}}`:         "5",
		`{"options":{"max_tokens":1},"options":{}}`:           "1",
		`{"options":{"max_tokens":1},"options":7}`:            "1",
		`{"options":{"max_tokens":1,"maxtokens":1,"MT":0}}`:   "",
		`{"options":{"max_tokens":1},"option":{}}`:            "",
		`{"options":{"max_tokens":1,"_max_tokens":0}}`:        "",
		`{"options":{"max_tokens":1,"$maxTokens":0,"@m":0}}`:  "",
		`{"options":{"max_tokens":1},"_options":{}}`:          "",
		`{"options":{"max_tokens":1,"max_tokens_":5}}`:        "1",
		`{"options":{"max_tokens":1},"other":{"options":{}}}`: "",
	} {
		v, ok, fault := costrule.Find([]byte(doc), path)
		if want == "" {
			require.True(t, ok, doc)
			require.Empty(t, fault, doc)
			continue
		}
		require.False(t, ok, doc)
		require.NotEmpty(t, fault, doc)
		require.Equal(t, want, v.Text(), doc)
	}
}

// Some readers accept other escapes than those of JSON, each in its own way.
func TestEscapesThatAreNone(t *testing.T) {
	for _, doc := range []string{`{"a\_b":1}`, `{"x":"\x41"}`, `{"x":"\u00g1"}`, `{"x":"\u12"}`, `{"x":"\'"}`, "{\"x\":\"\\\n\"}"} {
		_, _, fault := costrule.Find([]byte(doc), costrule.Path{"a_b"})
		require.NotEmpty(t, fault, doc)
	}
	v, ok, _ := costrule.Find([]byte(`{"a":"\"\\\/\b\f\n\r\t\u00fF\u0041"}`), costrule.Path{"a"})
	require.True(t, ok)
	require.Equal(t, "\"\\/\b\f\n\r\tÿA", v.Text())
}

// A string that is not kept completely is no number.
func TestAStringThatIsCut(t *testing.T) {
	for n, whole := range map[int]bool{100: true, 118: true, 119: false, 500: false} {
		at := costrule.Place{Path: costrule.Path{"a"}}
		s := costrule.Scanner{Keep: 120}
		s.Value = func(v costrule.Value) { at.Take(&s, v) }
		_, _ = s.Write([]byte(`{"a":"` + strings.Repeat("0", n-1) + `7"}`))
		s.End()
		v, ok, _ := at.Found(&s)
		require.True(t, ok)
		require.Equal(t, !whole, v.Cut(), n)
		number, ok := v.Number()
		require.Equal(t, whole, ok, n)
		require.Equal(t, whole, number == 7, n)
	}
}

func TestTagsOfNumbers(t *testing.T) {
	for doc, want := range map[string]string{
		`43`: "43", `43.0`: "43", `4.3e1`: "43", `"43.0"`: "43.0", `-0`: "0", `-43.00`: "-43", `0.5`: "0.5", `5e-1`: "0.5",
		`9007199254740993`: "9007199254740993", `1234567890123456789.0`: "1234567890123456789", `1e18`: "1000000000000000000",
		`1e400`: "+Inf", `10e399`: "+Inf", `1e30`: "1e+30", `true`: "true", `NaN`: "NaN", `1e-400`: "0", `{}`: "",
		`43.` + strings.Repeat("0", 100) + `1`: "43", `4.3e0000001`: "43", `9007199254740992.5`: "9.007199254740992e+15",
		`9999999999999999999`: "9999999999999999999", `9999999999999999999.0`: "9999999999999999999", `1.1e19`: "1.1e+19",
	} {
		v, ok, _ := costrule.Find([]byte(`{"a":`+doc+`}`), costrule.Path{"a"})
		require.True(t, ok, doc)
		require.Equal(t, want, v.Tag(), doc)
	}
}

// However a text is escaped, and however it is cut into pieces, its length is that of its decoded form.
func TestLengthsOfTexts(t *testing.T) {
	for _, text := range []string{
		"", "hello", "\u65e5\u672c\u8a9e", "é\"\\/\n\t", "😀😀", "a\u0000b", "ÿ\u07ff\u0800\uffff", "\ud7ff\U00010000\U0010ffff\ue000",
	} {
		plain, err := json.Marshal(text)
		require.NoError(t, err)
		escaped := `"`
		for _, u := range utf16.Encode([]rune(text)) {
			escaped += fmt.Sprintf(`\u%04X`, u)
		}
		source := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\x00", `\u0000`).Replace(text)
		for _, form := range []string{string(plain), `"` + source + `"`, escaped + `"`} {
			for size := 1; size <= 3; size++ {
				var got costrule.Value
				s := costrule.Scanner{Keep: 8, Value: func(v costrule.Value) { got = v }}
				write(&s, form, size)
				s.End()
				require.False(t, s.Broken(), form)
				require.Equal(t, len(text), got.Bytes, form)
				require.Equal(t, utf8.RuneCountInString(text), got.Chars, form)
			}
		}
	}
}

// Half a character counts as the one that readers put in its place.
func TestHalvesOfCharacters(t *testing.T) {
	for _, form := range []string{
		`\udc00\udc00`, `\udfff`, `\ud800`, `\ud83d\ud83d\ude00`, `\ud83d\ude00\ude00`, `\ud83dx\ude00`, `\ud83d\n\ude00`, `\ude00\ud83d`, `x\ude00`,
		`\udbff\ue000`, `\ud83d\ud7ff`,
	} {
		var want string
		require.NoError(t, json.Unmarshal([]byte(`"`+form+`"`), &want))
		var got costrule.Value
		s := costrule.Scanner{Keep: 8, Value: func(v costrule.Value) { got = v }}
		write(&s, `["\ud83d","`+form+`"]`, 1)
		require.Equal(t, len(want), got.Bytes, form)
		require.Equal(t, utf8.RuneCountInString(want), got.Chars, form)
	}
}
