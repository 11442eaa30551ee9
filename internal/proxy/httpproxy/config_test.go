package httpproxy

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
)

func TestCosts(t *testing.T) {
	for _, c := range []struct {
		rule, body string
		partly     bool
		want       int
	}{
		{"", "abc", false, 1},
		{"0", "abc", false, 0},
		{"7", "", false, 7},
		{"bytes/10", "", false, 0},
		{"bytes/10", "01234567890", false, 2},
		{"header X-Cost", "", false, 12},
		{"header X-None", "", false, 1},
		{"json a.b", `{"a":{"b":2.2}}`, false, 3},
		{"json a.b", `{"a":{"b":"4"}}`, false, 4},
		{"json a.0.b", `{"a":[{"b":5e2}]}`, false, 500},
		{"json a.b", `{"a":{"b":99999999999}}`, false, costrule.Ungrantable},
		{"json a.b", `{"a":{"b":null}}`, false, 1},
		{"json a.b", `{"a":[]}`, false, 1},
		{"json a.b", ``, false, 1},
	} {
		rule, ok := parseCost(c.rule)
		require.True(t, ok, c.rule)
		req, err := http.NewRequest(http.MethodPost, "http://h", nil)
		require.NoError(t, err)
		req.Header.Set("X-Cost", "12")
		req.ContentLength = int64(len(c.body))
		got, err := rule.draw(&message{req: req, body: []byte(c.body), whole: !c.partly, estimates: rule.estimates})
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s of %s", c.rule, c.body)
	}
	for _, text := range []string{
		"x", "-1", "1000000001", "bytes/0", "bytes/", "bytes/x", "header", "header a b", "header A:", "json", "json .a", "json a..b",
	} {
		_, ok := parseCost(text)
		require.False(t, ok, text)
	}
	rule, _ := parseCost("header X-Cost")
	req, err := http.NewRequest(http.MethodPost, "http://h", nil)
	require.NoError(t, err)
	req.Header.Set("X-Cost", "many")
	_, err = rule.draw(&message{req: req})
	require.EqualError(t, err, `header X-Cost is "many", allowed: a number, 0 or more`)
}

func TestHosts(t *testing.T) {
	for list, cases := range map[string]map[string]bool{
		"api.example.com":            {"api.example.com:443": true, "API.example.com.:80": true, "api.example.com:22": false, "x.api.example.com:443": false},
		"*.example.com":              {"a.example.com:443": true, "a.b.example.com:80": true, "example.com:443": false, "badexample.com:443": false},
		"h:8443, other":              {"h:8443": true, "h:443": false, "other:443": true},
		"*":                          {"anything:443": true, "anything:80": true, "anything:1": false, "anything:": false, "10.0.0.1:22": false},
		"*:*, h:*":                   {"anything:1": true},
		"h:*":                        {"h:1": true, "other:443": false},
		"*:*":                        {"h:80": true, "h:080": false, "h:0": false, "h:65536": false, "h:+80": false, "h:": false},
		"*:443":                      {"anything:443": true, "anything:80": false},
		"[::1]:80":                   {"::1|80": true},
		"[fd00::10]":                 {"fd00::10|443": true, "FD00:0:0::0010|80": true, "fd00::10|22": false, "fd00::1|443": false},
		"fd00::10":                   {"fd00::10|443": true},
		"[FD00:0:0:0:0:0:0:10]:8000": {"fd00::10|8000": true, "fd00::10|443": false},
		"[::ffff:10.0.0.5]:8000":     {"10.0.0.5:8000": true, "::ffff:a00:5|8000": true},
		"10.0.0.5":                   {"10.0.0.5.:80": true, "::ffff:10.0.0.5|80": true, "167772165:80": true, "0xa.5:80": true, "010.0.0.5:80": false},
		"0xa000005":                  {"10.0.0.5:80": true},
		"bücher.example":             {"xn--bcher-kva.example:443": true, "BÜCHER.example:443": true},
		"１０.0.0.5":                   {"10.0.0.5:80": true},
	} {
		l, ok := parseHosts(list)
		require.True(t, ok, list)
		for target, want := range cases {
			sep := ":"
			if strings.Contains(target, "|") {
				sep = "|"
			}
			i := strings.LastIndex(target, sep)
			require.Equal(t, want, l.allow(target[:i], target[i+1:]), "%s in %s", target, list)
		}
	}
	for _, list := range []string{"", "a,", "http://h", "h:", "a*b", "*.", "u@h"} {
		_, ok := parseHosts(list)
		require.False(t, ok, list)
	}
}

func TestValidate(t *testing.T) {
	require.NoError(t, (&Config{Upstream: "https://h/v1"}).Validate())
	for want, c := range map[string]Config{
		"upstream is not set, and neither is forward, allowed: one of them, or both": {},
		"upstream is not as it should be (not shown)":                                {Upstream: "https://u:" + canary + "@h"},
		`cost is "bytes/0", allowed: a whole number, ` + "`bytes/N` with N above 0":  {Upstream: "http://h", Cost: "bytes/0"},
		`settle is "guess", allowed: ` + "`drawn`, `usage` or `header NAME`":         {Upstream: "http://h", Settle: "guess"},
		`tag is "me"`: {Upstream: "http://h", Tag: "me"},
		`provider is "x", allowed: ` + "`generic`, `openai`, `azure`, `anthropic`, `gemini`, ": {Upstream: "http://h", Provider: "x"},
		`listen is "h", allowed: one or more of ` + "`unix:/PATH`":                             {Upstream: "http://h", Serving: proxy.Serving{Listen: "h"}},
		"listen has 0.0.0.0:80, which can be reached from elsewhere, and there is no token": {
			Upstream: "http://h", Serving: proxy.Serving{Listen: "127.0.0.1:80,0.0.0.0:80"},
		},
		"tokenFile is set, and so is token, allowed: one of them": {
			Upstream: "http://h", Serving: proxy.Serving{Token: numathrottle.NewSecret(canary), TokenFile: "/x"},
		},
	} {
		err := c.Validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), canary)
		require.Equal(t, err.Error(), Run(t.Context(), c).Error())
	}
}

func TestATokenFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	c := Config{Upstream: "http://h", Serving: proxy.Serving{Listen: "127.0.0.1:0", TokenFile: file}}
	require.ErrorContains(t, Run(t.Context(), c), "tokenFile is")
	require.NoError(t, os.WriteFile(file, []byte(canary+"\n"), 0o600))
	token, err := c.Serving.Secret()
	require.NoError(t, err)
	require.Equal(t, canary, token)
}
