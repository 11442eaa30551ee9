package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestEveryFaultIsToldAtOnce(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := loaded(t, env{
		"URL": "https://host{{.Key}}/", "HEADERS": "Authorization: " + "x\nNo colon\nX-A: {{", "STATUSES": "404=gone", "METHOD": "HEAD",
		"CONCURRENCY":  "0.5",
		"BEARER_TOKEN": canary, "BEARER_TOKEN_FILE": missing, "BASIC_USERNAME": "u", "CERT_FILE": "c", "OAUTH_SECRET": canary,
		"SIGNATURE": "sha256", "ALLOW_ADDRESSES": "everything", "MAX_REQUESTS": "5", "PROXY": "socks5://" + canary + "@h", "URLL": "x",
		"NUMATHROTTLE_MAX": "-1", "NUMATHROTTLE_STORE": "ftp://x", "NUMATHROTTLE_HEALTH_ADDR": "nowhere",
	})
	text := err.Error()
	require.NotContains(t, text, canary)
	for _, want := range []string{
		"numathrottle: url has no / between its host and its first action, allowed: an http or https URL",
		"headers line 1 sets Authorization", "headers line 2 has no colon", "headers line 3:",
		`statuses is "404=gone" (HTTP_SINK_STATUSES), allowed: entries such as`,
		`method is "HEAD" (HTTP_SINK_METHOD)`, `concurrency is "0.5"`, "bearerTokenFile is set, and so is bearerToken, allowed: one of them",
		"which cannot be used: no such file or directory", "bearerToken is set, and so is basicUsername", "certFile is set without keyFile",
		"oauthSecret or oauthSecretFile is set without oauthTokenURL", "signature is set without signatureKey", `allowAddresses is "everything"`,
		"maxRequests is set without unit", "proxy is", "HTTP_SINK_URLL is not a variable of http-sink; did you mean HTTP_SINK_URL?",
		"max is", "store", "healthAddr is",
	} {
		require.Contains(t, text+withoutSources(err).Error(), want)
	}
}

func TestAURLIsRequired(t *testing.T) {
	_, err := loaded(t, nil)
	require.ErrorContains(t, err, "url is not set, allowed: an http or https URL, here or in urlFile")
}

func TestWhatTheOtherSinksMayNotAnswer(t *testing.T) {
	for _, role := range []string{"fb-udsink", "ons-udsink"} {
		t.Setenv("NUMAFLOW_UD_CONTAINER_TYPE", role)
		_, err := loaded(t, env{"URL": "http://h", "ON_UNAVAILABLE": "fallback", "ON_INVALID": "fallback", "STATUSES": "404=fallback", "ON_OK": "on-success"})
		for _, key := range []string{"onUnavailable is fallback", "onInvalid is fallback", "statuses has the class fallback", "onOK is on-success"} {
			require.ErrorContains(t, withoutSources(err), key+", allowed: in a container of type "+role)
		}
	}
	t.Setenv("NUMAFLOW_UD_CONTAINER_TYPE", "udsink")
	_, err := loaded(t, env{"URL": "http://h", "ON_UNAVAILABLE": "fallback", "ON_INVALID": "fallback", "STATUSES": "404=fallback", "ON_OK": "on-success"})
	require.NoError(t, err)
}

func TestTheSinksOfOnePodAreProcessorsOfTheirOwn(t *testing.T) {
	for name, value := range map[string]string{
		"NUMAFLOW_NAMESPACE": "ns", "NUMAFLOW_PIPELINE_NAME": "p", "NUMAFLOW_VERTEX_NAME": "v", "NUMAFLOW_POD": "pod-0",
		"NUMAFLOW_UD_CONTAINER_TYPE": "udsink",
	} {
		t.Setenv(name, value)
	}
	s, err := loaded(t, env{"URL": "http://h"})
	require.NoError(t, err)
	require.Equal(t, "ns/p/v pod-0", s.Pool.Pool+" "+s.Pool.ID)
	t.Setenv("NUMAFLOW_UD_CONTAINER_TYPE", "fb-udsink")
	s, err = loaded(t, env{"URL": "http://h"})
	require.NoError(t, err)
	require.Equal(t, "ns/p/v/fallback pod-0/fallback", s.Pool.Pool+" "+s.Pool.ID)
	t.Setenv("NUMAFLOW_UD_CONTAINER_TYPE", "ons-udsink")
	s, err = loaded(t, env{"URL": "http://h", "NUMATHROTTLE_POOL": "shared"})
	require.NoError(t, err)
	require.Equal(t, "shared pod-0/on-success", s.Pool.Pool+" "+s.Pool.ID, "a pool that is set is shared")
}

func TestCheckPrintsWhatIsInForceFromTheFileAndTheEnvironment(t *testing.T) {
	t.Setenv("NUMATHROTTLE_CONFIG", file(t, "sink.yaml",
		"url: https://host/{{.Key}}\nmax: 50\nformat: ndjson\nbearerToken: "+canary+"\nheaders: |\n  X-A: a\n  X-B: b\n"))
	t.Setenv("HTTP_SINK_MAX_MESSAGES", "7")
	t.Setenv("NUMATHROTTLE_STORE_PASSWORD", canary)
	t.Setenv("NUMATHROTTLE_STORE", "redis://127.0.0.1:1")
	t.Setenv("NUMATHROTTLE_POOL", "p")
	var out bytes.Buffer
	require.NoError(t, httpSink.Run(t.Context(), []string{"--check"}, &out, &out))
	require.NotContains(t, out.String(), canary)
	for _, line := range []string{
		`url: "https://host/{{.Key}}"`, `max: "50"`, `maxMessages: "7"`, `contentType: "application/x-ndjson"`, `timeout: "30s"`,
		`bearerToken: (set, not shown)`,
		`headers: "X-A: a\nX-B: b"`,
	} {
		require.Contains(t, out.String(), line+"  # ")
	}
	require.ErrorContains(t, httpSink.Run(t.Context(), []string{"check"}, &out, &out), `"check" is no flag`)
	t.Setenv("HTTP_SINK_METHOD", "x")
	require.ErrorContains(t, httpSink.Run(t.Context(), []string{"--check"}, &out, &out), "method is")
}

func TestRunServes(t *testing.T) {
	service := startService(t, nil)
	dir := dataplane.Dir(t)
	for name, value := range map[string]string{
		"HTTP_SINK_URL": service.URL, "HTTP_SINK_ALLOW_ADDRESSES": "loopback",
		"HTTP_SINK_SOCKET": filepath.Join(dir, "s"), "HTTP_SINK_SERVER_INFO": filepath.Join(dir, "info"),
	} {
		t.Setenv(name, value)
	}
	ctx := testContext(t)
	log := &testkit.Book{}
	done := make(chan error)
	serving, stop := context.WithCancel(ctx)
	go func() { done <- httpSink.Run(serving, nil, log, log) }()
	socket, err := dataplane.DialSink(ctx, filepath.Join(dir, "s"))
	require.NoError(t, err)
	results, err := socket.Do(ctx, messages("a"))
	require.NoError(t, err)
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(results))
	require.NoError(t, socket.Close())
	stop()
	require.NoError(t, <-done)
}

// The settings in the example and in the README are good, but for the files that they name.
func TestTheExamplesAreGood(t *testing.T) {
	token := file(t, "token", canary)
	pipeline, err := os.ReadFile("pipeline.yaml")
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(pipeline))
	var configMap struct {
		Data map[string]string `yaml:"data"`
	}
	require.NoError(t, decoder.Decode(&configMap))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	contents := []string{configMap.Data["sink.yaml"]}
	for _, snippet := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		contents = append(contents, snippet[1])
	}
	require.Len(t, contents, 3)
	t.Setenv("NUMATHROTTLE_POOL", "p")
	for _, content := range contents {
		require.NotEmpty(t, content)
		t.Setenv("NUMATHROTTLE_CONFIG", file(t, "sink.yaml", regexp.MustCompile(`/secrets/[a-z-]+`).ReplaceAllLiteralString(content, token)))
		_, err := loadSettings()
		require.NoError(t, err)
	}
	for _, name := range regexp.MustCompile(`\{?name: (NUMATHROTTLE_\w+|HTTP_SINK_\w+)`).FindAllStringSubmatch(string(pipeline), -1) {
		t.Setenv(name[1], map[bool]string{true: os.Getenv("NUMATHROTTLE_CONFIG"), false: "x"}[name[1] == "NUMATHROTTLE_CONFIG"])
	}
	t.Setenv("NUMATHROTTLE_STORE", "nats://h")
	_, err = loadSettings()
	require.NoError(t, err, "its variables are known")
}

// The README has every setting of this program; those of the limit and the pool are in docs/settings.md. Examples that are templates compile.
func TestReadmeHasEverySetting(t *testing.T) {
	require.Empty(t, config.Incomplete(fields))
	for _, row := range config.Rows(fields) {
		if strings.Contains(row.Example, "{{") {
			_, err := loaded(t, env{"URL": "http://h", strings.TrimPrefix(row.Variables[0], prefix): row.Example})
			require.NoError(t, err, row.Example)
		}
	}
	content, err := os.ReadFile("README.md")
	require.NoError(t, err)
	want, err := config.ReplaceTable(string(content), "settings", config.Table(own(slices.Concat(
		requestFields, batchFields, limitFields, retryFields, answerFields, loginFields, connectionFields, processFields))))
	require.NoError(t, err)
	if *scenario.Update {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(content), "run: go test ./examples/http-sink -run TestReadme -update")
}

// Every setting of a limit that the library has is one of this program, under the same name.
func TestTheLibrarysLimitIsTheSinks(t *testing.T) {
	for name, value := range map[string]string{
		"MAX": "50", "PER": "2s", "BURST": "5", "HARD": "true", "MIN": "20", "RAMP_UP_DURATION": "1m", "MODES": "scheduled",
		"RESUMED_RAMP_UP": "true", "TTL": "60s",
		"ADAPTIVE": "true", "ADAPTIVE_MIN": "10", "STRICT": "true", "MAX_RESERVED": "3",
	} {
		t.Run(name, func(t *testing.T) {
			vars := env{"URL": "http://h", "NUMATHROTTLE_MAX": "50", "NUMATHROTTLE_" + name: value}
			if name == "ADAPTIVE_MIN" {
				vars["NUMATHROTTLE_ADAPTIVE"] = "true"
			}
			switch name {
			case "MAX_RESERVED":
				vars["NUMATHROTTLE_STRICT"] = "true"
			case "MODES", "RESUMED_RAMP_UP", "TTL":
				vars["NUMATHROTTLE_MIN"] = "20"
			}
			s, err := loaded(t, vars)
			require.NoError(t, err)
			shown := httpSink.Effective(&s, &config.Reading{})
			require.Equal(t, 1, strings.Count(shown, "\nmax: "), "once is enough")
			limit := s.Pool.Limit
			require.Equal(t, 50, limit.Max)
			limit.Max = 0
			require.Equal(t, name == "MAX", limit == throttle.Limit{}, "%+v", limit)
		})
	}
	s, err := loaded(t, env{
		"URL": "http://h", "NUMATHROTTLE_MAX": "50", "NUMATHROTTLE_STRICT": "true", "NUMATHROTTLE_ADAPTIVE": "true",
		"NUMATHROTTLE_MAX_RESERVED": "2", "DESTINATION_MAX": "7",
	})
	require.NoError(t, err)
	require.Equal(t, throttle.Limit{Max: 7, Strict: true, Adaptive: true, MaxReserved: 2}, s.destinationLimit())
	_, err = loaded(t, env{"URL": "http://h", "NUMATHROTTLE_MAX": "50", "NUMATHROTTLE_STRICT": "true", "NUMATHROTTLE_ON_STORE_LOSS": "degrade"})
	require.ErrorContains(t, err, "onStoreLoss is degrade, but a strict limit has nothing to go on with")
	_, err = loaded(t, env{"URL": "http://h", "NUMATHROTTLE_MAX": "50", "NUMATHROTTLE_ADAPTIVE_MIN": "60"})
	require.ErrorContains(t, err, "adaptiveMin")
}

func TestNamesThatAreNearAreHintedAt(t *testing.T) {
	for name, want := range map[string]string{
		"HTTP_SINK_MAX": "NUMATHROTTLE_MAX", "HTTP_SINK_PER": "NUMATHROTTLE_PER", "HTTP_SINK_STRICT": "NUMATHROTTLE_STRICT",
		"HTTP_SINK_STORE":   "NUMATHROTTLE_STORE",
		"HTTP_SINK_ADAPTIV": "NUMATHROTTLE_ADAPTIVE", "HTTP_SINK_BURSTS": "NUMATHROTTLE_BURST", "NUMATHROTTLE_URL": "HTTP_SINK_URL",
		"NUMATHROTTLE_UNIT":         "HTTP_SINK_UNIT",
		"NUMATHROTTLE_BEARER_TOKEN": "HTTP_SINK_BEARER_TOKEN", "NUMATHROTLE_MAX": "NUMATHROTTLE_MAX",
		"NUMA_THROTTLE_MAX": "NUMATHROTTLE_MAX", "HTTPSINK_URL": "HTTP_SINK_URL",
		"HTTP_SINK_MAXATTEMPT": "HTTP_SINK_MAX_ATTEMPTS", "http_sink_max": "NUMATHROTTLE_MAX",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "5")
			_, err := loaded(t, env{"URL": "http://h"})
			require.ErrorContains(t, err, name+" is not a variable of http-sink; did you mean "+want+"?")
		})
	}
	for _, name := range []string{"OTHER_SINK_URL", "HTTP_LINK_URL", "HTTP_PROXY", "MAX", "MY_HTTP_SINK_URL", "MAP_MAX"} {
		t.Setenv(name, "http://h")
	}
	_, err := loaded(t, env{"URL": "http://h"})
	require.NoError(t, err, "the variables of others")
}

// What will not be dialled is refused at once, in whatever spelling, also where a template or a file begins with it.
func TestLiteralAddressesAreCheckedAtOnce(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[fe80::1%25eth0]", "10.0.0.1",
		"169.254.169.254", "127.0.0.1.", "0.0.0.0",
	} {
		for _, url := range []string{"http://" + host, "http://" + host + ":8080/{{.Key}}", "https://" + host + "/a?b={{.Value}}"} {
			_, err := loaded(t, env{"URL": url, "ALLOW_ADDRESSES": ""})
			require.ErrorContains(t, err, "url names a host that is", url)
			require.ErrorContains(t, err, "allowAddresses")
		}
	}
	unset := func(t *testing.T, vars env) error {
		t.Helper()
		_, err := loaded(t, vars)
		return err
	}
	t.Run("file", func(t *testing.T) {
		err := unset(t, env{"URL_FILE": file(t, "url", "http://10.1.2.3/"+canary+"\n")})
		require.ErrorContains(t, err, "urlFile names a host that is a private address")
		require.NotContains(t, err.Error(), canary)
	})
	t.Run("token endpoint", func(t *testing.T) {
		require.ErrorContains(t, unset(t, env{
			"URL": "http://h", "OAUTH_TOKEN_URL": "http://192.168.0.1/token", "OAUTH_CLIENT_ID": "id", "OAUTH_SECRET": "x",
		}), "oauthTokenURL names a host that is a private address")
	})
	for name, vars := range map[string]env{
		"allowed": {"URL": "http://10.1.2.3/", "ALLOW_ADDRESSES": "10.0.0.0/8"}, "public": {"URL": "http://8.8.8.8/", "ALLOW_ADDRESSES": "private"},
		"name": {"URL": "http://localhost/", "ALLOW_ADDRESSES": "private"}, "behind a proxy": {"URL": "http://10.1.2.3/", "PROXY": "http://proxy:3128"},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, unset(t, vars)) })
	}
}

// Of every secret, from a variable, a file or the configuration file, one line end does not count. Any other control character is
// a fault that names the setting and the character, and nothing of the secret.
func TestOneRuleForSecrets(t *testing.T) {
	type place struct {
		key    string
		vars   env
		reveal func(s *settings) program.Credential
	}
	for _, p := range []place{
		{"bearerToken", env{}, func(s *settings) program.Credential { return s.BearerToken }},
		{"basicPassword", env{"BASIC_USERNAME": "u"}, func(s *settings) program.Credential { return s.BasicPassword }},
		{"apiKey", env{}, func(s *settings) program.Credential { return s.APIKey }},
		{"oauthSecret", env{"OAUTH_TOKEN_URL": "http://h/t", "OAUTH_CLIENT_ID": "id"}, func(s *settings) program.Credential { return s.OAuthSecret }},
		{"signatureKey", env{"SIGNATURE": "sha256"}, func(s *settings) program.Credential { return s.SignatureKey }},
	} {
		variable := strings.TrimPrefix(fieldOf(t, p.key).Variable(), prefix)
		from := map[string]func(t *testing.T, vars env, text string){
			"variable": func(_ *testing.T, vars env, text string) { vars[variable] = text },
			"file":     func(t *testing.T, vars env, text string) { vars[variable+"_FILE"] = file(t, "secret", text) },
			"yaml": func(t *testing.T, vars env, text string) {
				content, err := yaml.Marshal(map[string]string{p.key: text})
				require.NoError(t, err)
				vars["NUMATHROTTLE_CONFIG"] = file(t, "sink.yaml", string(content))
			},
		}
		for name, put := range from {
			load := func(t *testing.T, text string) (settings, error) {
				vars := maps.Clone(p.vars)
				vars["URL"] = "http://h"
				put(t, vars, text)
				return loaded(t, vars)
			}
			for text, want := range map[string]string{
				canary: canary, canary + "\n": canary, canary + "\r\n": canary, "a " + canary: "a " + canary,
			} {
				t.Run(p.key+" "+name, func(t *testing.T) {
					s, err := load(t, text)
					require.NoError(t, err)
					got, err := p.reveal(&s).Read()
					require.NoError(t, err)
					require.Equal(t, want, got)
				})
			}
			for text, problem := range map[string]string{
				canary + "\n\n":        "has a line feed (U+000A) at byte 15",
				canary + "\r":          "has a carriage return (U+000D) at byte 15",
				"a\tb" + canary + "\n": "has a tab (U+0009) at byte 2",
				canary + "\u0085":      "has a control character (U+0085) at byte 15",
				"x\n" + canary:         "has a line feed (U+000A) at byte 2",
				"\ufeff" + canary:      "begins with a byte-order mark",
				canary + "\u2028":      "has a line separator (U+2028) at byte 15",
				canary + "\x7f\n":      "has a delete (U+007F) at byte 15",
				canary + "\x1b[0m":     "has an escape (U+001B) at byte 15",
			} {
				t.Run(p.key+" "+name, func(t *testing.T) {
					_, err := load(t, text)
					require.ErrorContains(t, err, problem)
					require.ErrorContains(t, err, p.key)
					require.NotContains(t, err.Error(), canary)
				})
			}
		}
	}
}

// What a header cannot hold is found when the configuration is read, and not by each message.
func TestSecretsThatNoHeaderHolds(t *testing.T) {
	for text, problem := range map[string]string{
		" " + canary: "has a space at its beginning or end", canary + " ": "has a space at its beginning or end",
		canary + "é":    "has a character that is not ASCII at byte 15",
		canary + "\xff": "has a character that is not ASCII at byte 15",
	} {
		for _, key := range []string{"BEARER_TOKEN", "API_KEY"} {
			for _, vars := range []env{{key: text}, {key + "_FILE": file(t, "secret", text+"\n")}} {
				t.Run(key, func(t *testing.T) {
					vars["URL"] = "http://h"
					_, err := loaded(t, vars)
					require.ErrorContains(t, err, problem)
					require.NotContains(t, err.Error(), canary)
				})
			}
		}
	}
	s, err := loaded(t, env{"URL": "http://h", "BASIC_USERNAME": "u", "BASIC_PASSWORD": " é "})
	require.NoError(t, err, "a password may have spaces and be of any language")
	require.Equal(t, " é ", s.BasicPassword.Text.Reveal())
}

// A URL and headers may hold secrets, too: what is wrong with them is told without them.
func TestFaultsOfURLsAndHeadersShowNothing(t *testing.T) {
	for _, vars := range []env{
		{"URL": "https://h/" + canary + "\x01"},
		{"URL": "https://h/" + canary + "\r\n\r\n"},
		{"URL": "https://u:" + canary + "@h/"},
		{"URL": "https://h", "HEADERS": "X-Key: " + canary + "\x02"},
		{"URL_FILE": file(t, "url", "https://h/"+canary+"\n\n")},
	} {
		t.Run("", func(t *testing.T) {
			_, err := loaded(t, vars)
			require.Error(t, err)
			require.NotContains(t, err.Error(), canary)
		})
	}
	s, err := loaded(t, env{"URL": "https://h/x\r\n"})
	require.NoError(t, err)
	require.Equal(t, "https://h/x", s.url)
}

// A key that is no text is given in base64.
func TestABinaryKeyOfTheSignature(t *testing.T) {
	s, err := loaded(t, env{"URL": "http://h", "SIGNATURE": "sha256", "SIGNATURE_KEY": "base64:AAECCg=="})
	require.NoError(t, err)
	require.NoError(t, s.signer().CheckKey())
	_, err = loaded(t, env{"URL": "http://h", "SIGNATURE": "sha256", "SIGNATURE_KEY": "base64:" + canary})
	require.ErrorContains(t, err, "signatureKey is not base64")
	require.NotContains(t, err.Error(), canary)
}

func fieldOf(t *testing.T, key string) *field {
	t.Helper()
	i := slices.IndexFunc(fields, func(f field) bool { return f.Key == key })
	require.GreaterOrEqual(t, i, 0)
	return &fields[i]
}
