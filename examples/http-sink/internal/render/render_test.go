package render

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
)

type datum struct {
	sinksdk.Datum

	value   string
	keys    []string
	headers map[string]string
}

func (d datum) ID() string                 { return "id-1" }
func (d datum) Value() []byte              { return []byte(d.value) }
func (d datum) Keys() []string             { return d.keys }
func (d datum) Headers() map[string]string { return d.headers }
func (d datum) EventTime() time.Time       { return time.Unix(0, 5).In(time.FixedZone("", 3600)) }
func (d datum) Watermark() time.Time       { return time.Unix(1, 0) }

func message(key, value string) *Message {
	return NewMessage(datum{value: value, keys: []string{key}, headers: map[string]string{"h": "v"}})
}

func TestURLs(t *testing.T) {
	for _, c := range []struct{ template, key, value, want string }{
		{"https://h", "", "", "https://h"},
		{"https://h:8443/a?b=c", "", "", "https://h:8443/a?b=c"},
		{"https://h/{{.Key}}", "a", "", "https://h/a"},
		{
			"https://h/x-{{.Key}}/y?q={{.Key}}&r={{.Key | query}}", "a/b?c#d&e f", "",
			"https://h/x-a%2Fb%3Fc%23d&e%20f/y?q=a%2Fb%3Fc%23d%26e+f&r=a%2Fb%3Fc%23d%26e+f",
		},
		{"https://h/{{raw .Key}}/z", "a/b", "", "https://h/a/b/z"},
		{"https://h/{{.JSON.n}}/{{.JSON.b}}", "", `{"n":12345678901234567890,"b":true}`, "https://h/12345678901234567890/true"},
		{"https://h/{{.EventTime}}", "", "", "https://h/1970-01-01T00:00:00.000000005Z"},
		{"https://h/{{with .Key}}{{.}}{{else}}none{{end}}", "", "", "https://h/none"},
		{"https://h/{{range .Keys}}{{.}}/{{end}}", "a?", "", "https://h/a%3F/"},
		{"https://h/{{$k := .Key}}{{$k}}", "a?", "", "https://h/a%3F"},
		{"https://h/{{index .Headers \"h\"}}", "", "", "https://h/v"},
		{"https://h/?q={{.Key}}", "", "", "https://h/?q="},
	} {
		u, err := ParseURL(c.template)
		require.NoError(t, err, c.template)
		got, err := u.Render(message(c.key, c.value))
		require.NoError(t, err, c.template)
		require.Equal(t, c.want, got)
	}
}

func TestTemplatesThatAreRefused(t *testing.T) {
	for template, want := range map[string]string{
		"":                                  "is empty",
		"{{.Key}}":                          "begins with an action",
		"https://{{.Key}}/":                 "has no host",
		"https://h{{.Key}}/":                "has no / between its host",
		"HTTPS://h{{.Key}}/":                "has no / between its host",
		"https://h:{{.Key}}/":               "",
		"ftp://h/":                          "has not the scheme",
		"//h/":                              "has not the scheme",
		"https://u:p@h/":                    "has a user",
		"https:///a":                        "has no host",
		"https://h/a/../b/{{.Key}}":         `has a segment "." or ".."`,
		"https://h/a%2e%2e/b":               "",
		"https://h/%2e%2E/b":                `has a segment "." or ".."`,
		"https://h/#{{.Key}}":               `"#"`,
		"https://h/a b":                     "a space",
		"https://h/{{.Key":                  "is no template",
		"https://h/{{.Kye}}":                "is no template for a message: it has .Kye, allowed: .ID, .Key",
		"https://h/{{if .Key}}?{{end}}a":    `"?" of the query within`,
		`https://h/{{template "x"}}`:        "",
		`https://h/{{define "x"}}a{{end}}b`: "has define",
		"https://h/%2{{.Key}}":              "does not parse",
	} {
		_, err := ParseURL(template)
		if template == "https://h/a%2e%2e/b" {
			require.NoError(t, err, "a.. is a name like another")
			continue
		}
		require.ErrorContains(t, err, want, template)
		require.NotContains(t, err.Error(), "u:p@h")
	}
}

func TestWhatAMessageCannotMakeOfAURL(t *testing.T) {
	for _, template := range []string{"https://h/a/{{.Key}}", "https://h/a/{{raw .Key}}", "https://h/a/x{{raw .Key}}y"} {
		for _, key := range []string{
			"..", ".", "../b", "..%2fb", "%2e%2e/b", "%2e%2e", "%252e%252e/b", "%25252e%25252e%25252fb",
			"..;/b", "..;a=b/c", `..\b`, "a\nb", "a%0ab", "a\x00", "#b", "%5c..%5c", "/../..//",
		} {
			u, err := ParseURL(template)
			require.NoError(t, err)
			got, err := u.Render(message(key, ""))
			if err != nil {
				continue
			}
			requireConfined(t, got)
		}
	}
	raw, err := ParseURL("https://h/a/{{raw .Key}}")
	require.NoError(t, err)
	for _, key := range []string{"..;/b", "..;a=b/c", "x/..%3bv/y"} { // which some servers take for ".."
		_, err := raw.Render(message(key, ""))
		require.ErrorContains(t, err, `has a segment "." or ".."`, key)
	}
	u, err := ParseURL("https://h/a/{{.Key}}")
	require.NoError(t, err)
	_, err = u.Render(message("", ""))
	require.Error(t, err, "nothing in a path would name another resource")
	u, err = ParseURL("https://h/a/{{.JSON.missing}}")
	require.NoError(t, err)
	_, err = u.Render(message("", `{"a":"secret"}`))
	require.EqualError(t, err, "the template of url failed for this message")
}

// requireConfined fails unless a URL is below https://h/a/, however often a server decodes it.
func requireConfined(t *testing.T, text string) {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	require.Equal(t, "https h", u.Scheme+" "+u.Host, text)
	require.Nil(t, u.User)
	require.Empty(t, u.Fragment)
	for p := u.EscapedPath(); ; {
		cleaned := path.Clean(strings.ReplaceAll(p, `\`, "/"))
		require.True(t, cleaned == "/a" || strings.HasPrefix(cleaned, "/a/"), "%s becomes %s", text, cleaned)
		decoded, err := url.PathUnescape(p)
		if err != nil || decoded == p {
			break
		}
		p = decoded
	}
	_, err = http.NewRequest(http.MethodPost, text, http.NoBody)
	require.NoError(t, err)
}

// Whatever a message holds, its URL is below what the operator has set.
func FuzzURL(f *testing.F) {
	for _, key := range []string{"..", "%2e%2e%2f", "a?b", "//evil", "@evil", "\\\\evil", "a\r\nHost: evil", "%25252e", "..;", "\u2025", ""} {
		f.Add(key, key)
	}
	var templates []*URL
	for _, text := range []string{
		"https://h/a/{{.Key}}", "https://h/a/{{raw .Key}}",
		"https://h/a/{{.Key}}/{{raw .Value}}?q={{.Key}}", "https://h/a/b{{.Key}}c?{{raw .Value}}",
	} {
		u, err := ParseURL(text)
		if err != nil {
			f.Fatal(err)
		}
		templates = append(templates, u)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		for _, u := range templates {
			if text, err := u.Render(message(key, value)); err == nil {
				requireConfined(t, text)
			}
		}
	})
}

// Any text is told what is wrong with it, or is a template whose URLs have its host.
func FuzzParseURL(f *testing.F) {
	f.Add("https://h/{{.Key}}")
	f.Add("https://h/{{if .Key}}a{{else}}b{{end}}?{{range .Keys}}{{.}}{{end}}")
	f.Fuzz(func(t *testing.T, template string) {
		u, err := ParseURL(template)
		if err != nil {
			return
		}
		text, err := u.Render(message("../x", "y"))
		if err != nil {
			return
		}
		parsed, err := url.Parse(text)
		require.NoError(t, err)
		require.Equal(t, u.Host(), parsed.Host)
	})
}

func TestHeaders(t *testing.T) {
	h, err := ParseHeaders("X-Key: {{.Key}}\n\n x-id:{{.ID}} \nX-Empty: {{index .Headers \"h\" | printf \"%.0s\"}}\nX-B: {{base64 .Value}}")
	require.NoError(t, err)
	got := http.Header{}
	require.NoError(t, h.Render(message("k", "v"), got))
	require.Equal(t, http.Header{"X-Key": {"k"}, "X-Id": {"id-1"}, "X-B": {"dg=="}}, got)
	for _, key := range []string{"a\r\nX-Evil: b", "a\nb", "\x00", strings.Repeat("x", longestHeader+1)} {
		require.ErrorContains(t, h.Render(message(key, ""), http.Header{}), "header X-Key has a control character, or more than 4096 bytes")
	}
	for _, line := range []string{"X-A", "X A: b", ": b", "Host: h", "Content-Length: 1", "cookie: a", "X-A: {{.Nothing", "X-A: a\nx-a: b"} {
		_, err := ParseHeaders(line)
		require.Error(t, err, line)
	}
}

func TestBodies(t *testing.T) {
	body, err := ParseText("body", `{"key":{{json .Key}},"all":{{json .JSON}}}`)
	require.NoError(t, err)
	got, err := body.Render(message(`"`, `{"b":1.0,"a":"<"}`))
	require.NoError(t, err)
	require.Equal(t, `{"key":"\"","all":{"a":"<","b":1.0}}`, got) //nolint:testifylint // byte for byte
	_, err = body.Render(message("", `{"secret":`))
	require.EqualError(t, err, "the template of body failed for this message")
	long, err := ParseText("body", `{{range .Keys}}{{$.Value}}{{end}}`)
	require.NoError(t, err)
	_, err = long.Render(NewMessage(datum{value: strings.Repeat("x", 1<<20), keys: make([]string, 100)}))
	require.ErrorIs(t, err, errTooLong)
}
