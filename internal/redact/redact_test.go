package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nothing of a secret is left in a text, however a service encodes it; and the rest of the text stays.
func TestText(t *testing.T) {
	for _, secret := range []string{
		"sk-hunter2/can+ary==", "hunter2-canary", `back\\sl"ash&<key>%41`, "hunter two canary", "hunter2", strings.Repeat("k3y/", 40),
		"ünïcödé-hunter2", "pässwörd",
	} {
		r := New(secret)
		encoded := map[string]string{
			"plain":            secret,
			"quoted by Go":     fmt.Sprintf("%+q", "malformed HTTP response: "+secret)[1:],
			"a query":          url.QueryEscape(secret),
			"a path":           url.PathEscape(secret),
			"a query, twice":   url.QueryEscape(url.QueryEscape(secret)),
			"lower case":       strings.ToLower(percentAll(secret)),
			"every character":  percentAll(secret),
			"some characters":  percentAll(secret[:2]) + secret[2:],
			"HTML":             html.EscapeString(secret),
			"JSON":             quoteJSON(t, secret),
			"JSON in JSON":     quoteJSON(t, quoteJSON(t, secret)),
			"JSON, slashes":    strings.ReplaceAll(quoteJSON(t, secret), "/", `\/`),
			"hex":              hex.EncodeToString([]byte(secret)),
			"upper hex":        strings.ToUpper(hex.EncodeToString([]byte(secret))),
			"in Authorization": "Bearer " + secret,
			"JSON in ASCII":    escaped(quoteJSON(t, secret), `\u%04x`),
			"the same in JSON": quoteJSON(t, escaped(secret, `\u%04X`)),
		}
		if len(secret) >= 8 {
			for _, user := range []string{"", "u", "us", "use", "user"} {
				for name, coding := range map[string]*base64.Encoding{
					"std": base64.StdEncoding, "raw": base64.RawStdEncoding, "url": base64.URLEncoding, "rawurl": base64.RawURLEncoding,
				} {
					for _, after := range []string{"", "x", "xy"} {
						code := coding.EncodeToString([]byte(user + secret + after))
						encoded["base64 "+name+user+after] = code
						encoded["base64 in a query "+name+user+after] = url.QueryEscape(code)
						encoded["base64 in JSON "+name+user+after] = strings.ReplaceAll(code, "/", `\/`)
					}
				}
			}
		}
		for name, text := range encoded {
			got := r.Text("before: " + text + ", after " + text + ".")
			require.Equal(t, 2, strings.Count(got, Hidden), "%s of %s: %s", name, secret, got)
			left := strings.ReplaceAll(strings.ReplaceAll(got, Hidden, ""), "malformed HTTP response: ", "")
			require.LessOrEqual(t, len(left), len("before: Bearer \"\", after Bearer \"\"."), "%s of %s: %s", name, secret, got)
			require.True(t, strings.HasPrefix(got, "before: "), got)
		}
	}
}

// A secret that is wrapped into lines, or a code of one that is cut, is found too.
func TestWrapped(t *testing.T) {
	secret := "sk-proj-" + strings.Repeat("aB3dE6gH9/", 12)
	r := New(secret)
	for _, text := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret))} {
		for _, width := range []int{76, 64, 20} {
			for _, end := range []string{"\n", "\r\n", "\n  ", "\r\n\t", `\n`, `\r\n`, `\\n`} {
				got := r.Text("before: " + wrap(text, width, end) + " .")
				require.Equal(t, 1, strings.Count(got, Hidden), "%q", got)
				require.LessOrEqual(t, len(got), len("before: "+Hidden+" .")+4+len(end), "%q: the end of a code may stay", got)
			}
		}
		require.Equal(t, "cut: "+Hidden+"...", r.Text("cut: "+text[:len(text)/2]+"..."))
	}
	require.Equal(t, "a\nb", r.Text("a\nb"))
}

func wrap(text string, width int, end string) string {
	var lines []string
	for ; len(text) > width; text = text[width:] {
		lines = append(lines, text[:width])
	}
	return strings.Join(append(lines, text), end)
}

// Long runs of what may be encoding cost no more per byte than other texts: at each place of a text only a few bytes are looked at. What
// stands behind those makes no difference.
func TestRunsAreCheap(t *testing.T) {
	const most = 64
	for _, run := range []string{`\`, "%25", "%", "25", "&", "&amp", "\n", "\r\n", "\n ", "\n\t", "0", "s"} {
		text := strings.Repeat(run, most)
		for _, begin := range []string{"", "%", "&#", "\n", `\`} {
			for _, end := range []string{"", "41", "u0041", "x41", "n", "/", ";", "65;", "A", "+"} {
				for _, want := range []byte{'A', '\\', '%', ' ', '/', '+', '&', 's'} {
					for _, code := range []bool{false, true} {
						short, long := begin+text, begin+text+text+end
						require.Equal(t, step(short, want, code), step(long, want, code), "%q, %q of %q", want, end, run)
						require.Equal(t, lineBreak(short), lineBreak(long), "%q of %q", end, run)
					}
				}
			}
		}
		require.Equal(t, text+"."+Hidden, New("sk-hunter2-canary").Text(text+".sk-hunter2-canary"))
	}
}

func percentAll(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02X", text[i])
	}
	return b.String()
}

func quoteJSON(t *testing.T, text string) string {
	t.Helper()
	encoded, err := json.Marshal(text)
	require.NoError(t, err)
	return strings.Trim(string(encoded), `"`)
}

func TestTextsWithoutASecretStay(t *testing.T) {
	r := New("", "short", "Bearer sk-hunter2-canary", "Basic "+base64.StdEncoding.EncodeToString([]byte("user:pass-word-1")))
	for _, text := range []string{"", "Bearer", "basic", "short", "sk-hunter2", "aGVsbG8gd29ybGQ=", `\`, "%", "%2", "&amp", `\u00`, "100% of \\ & more"} {
		require.Equal(t, text, r.Text(text))
	}
	require.Equal(t, "key (not shown), password (not shown)", r.Text("key sk-hunter2-canary, password pass-word-1"))
	r = New(`token="abcdef0123", x=abcdef4567`, "a=1;session=abcdef89")
	require.Equal(t, "(not shown) (not shown) (not shown) d4", r.Text("abcdef0123 abcdef4567 abcdef89 d4"))
	require.Equal(t, "cut: (not shown)***", New("sk-proj-0123456789abcdef").Text("cut: sk-proj-0123456789***"))
	require.Equal(t, "x", New().Text("x"))
	for _, scheme := range []string{"Digest", "ApiKey", "Negotiate"} {
		require.Equal(t, scheme+" needs (not shown)", New(scheme+" sk-hunter2").Text(scheme+" needs sk-hunter2"))
	}
	require.Equal(t, "(not shown) (not shown)", New("session=1; other=2").Text("other=2 session=1;"))
	require.Equal(t, "an analysis (not shown)", r.With("Sentiment analysis").Text("an analysis Sentiment analysis"))
}

func TestWord(t *testing.T) {
	r := New("sk-hunter2-canary-0123456789")
	require.Equal(t, "rate_limit_exceeded", r.Word("rate_limit_exceeded"))
	for _, word := range []string{"sk-hunter2-canary-0123456789", "x.sk-hunter2-canary-0123456789", "sk-hunter2-canary", "canary-0123456789"} {
		require.Empty(t, r.Word(word), word)
	}
	require.Equal(t, "sk", r.Word("sk"))
}

func TestRequest(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "http://u:pass-word-1@x/?api_key=in%2Fquery&page=numbered", nil)
	require.NoError(t, err)
	req.Header = http.Header{"Authorization": {"Bearer sk-hunter2"}, "X-Api-Key": {"key-of-header"}, "Accept": {"application/json"}}
	require.Equal(t, "(not shown) (not shown) (not shown) (not shown) numbered application/json",
		Request(req).Text("pass-word-1 in/query sk-hunter2 key-of-header numbered application/json"))
}

func FuzzText(f *testing.F) {
	f.Add("a sk%2Dhunter2", "sk-hunter2")
	f.Add("\x000000000000", "\x0000000") // what follows a hidden secret may look like the rest of another
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := New(secret).Text(text)
		if fields := strings.Fields(secret); len(fields) == 1 && fields[0] == secret && len(secret) >= shortest && !strings.EqualFold(secret, "bearer") &&
			!strings.Contains(Hidden, secret) {
			for part := range strings.SplitSeq(got, Hidden) {
				require.NotContains(t, part, secret)
			}
		}
	})
}
