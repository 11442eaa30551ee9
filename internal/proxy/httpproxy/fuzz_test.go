package httpproxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever a rule and a request are, a cost is a number that may be drawn, or there is an error; a tag is one that checkTag judges.
func FuzzRules(f *testing.F) {
	for _, rule := range []string{"", "7", "bytes/1000", "header X-Cost", "json a.b", "json items.0.size", "llm", "key", "host"} {
		f.Add(rule, `{"a":{"b":5},"items":[{"size":1e2}],"max_tokens":7,"n":3,"messages":[{"content":"hi"}]}`, "5", true)
	}
	f.Add("json a", `{"a":1e400}`, "1e2", false)
	f.Add("header X-Cost", "", " 99999999999", true)
	f.Add("llm", `{"max_tokens":-9223372036854775808,"n":1e300,"messages":[[[[{}]]]]}`, "", true)
	f.Add("json 0", "0 ", "0", false) // no JSON to the estimate, which still reads the field
	f.Fuzz(func(t *testing.T, rule, body, header string, whole bool) {
		if strings.ContainsAny(header, "\r\n\x00") {
			return // net/http hands none of these on
		}
		for _, kind := range []string{rule, "llm"} {
			c := Config{Upstream: "http://h", Cost: kind, Tag: rule}
			c = c.withDefaults()
			if _, ok := parseCost(kind); !ok {
				c.Cost = ""
			}
			if _, ok := parseTag(rule); !ok {
				c.Tag = ""
			}
			r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
			r.Header["X-Cost"] = []string{header}
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = int64(len(body))
			judged(t, &c, &message{req: r, host: "h", body: []byte(body), whole: whole})
		}
	})
}

// judged has a proxy judge a message, and looks at what it says.
func judged(t *testing.T, c *Config, m *message) {
	t.Helper()
	p := newHandler(c, limits{}, "", nil)
	m.estimates = p.cost.estimates
	got, err := p.judge(m)
	if err == nil {
		require.GreaterOrEqual(t, got.cost, 0)
		require.LessOrEqual(t, len(got.tag), 256)
	}
}

// Whatever a list of hosts is, it lets no address pass that no entry names, in any spelling.
func FuzzHosts(f *testing.F) {
	for _, list := range []string{"a.example", "*.a.example:8443", "[fd00::10]", "10.0.0.5:*", "*", "0x7f.1", "bücher.example, １.2.3.4"} {
		f.Add(list, "fd00::10", "443")
	}
	f.Fuzz(func(t *testing.T, list, name, port string) {
		l, ok := parseHosts(list)
		if !ok {
			require.Empty(t, l)
			return
		}
		if l.names(name, port) {
			require.True(t, l.allow(name, port))
		}
		if once := canonical(name); once == canonical(once) {
			require.Equal(t, l.allow(name, port), l.allow(once, port), "a spelling changes nothing")
		}
	})
}
