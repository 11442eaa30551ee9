package check

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var hashes = regexp.MustCompile(`\b(?:throttled-)?(ask|deliver|throttle|throttle-nats|console)-(?:[0-9a-f]{8}|[0-9a-z]{10})\b`)

// Labels may differ. The chart's NATS is for the pods of its release, that of the overlay for every MonoVertex of the namespace.
var differs = regexp.MustCompile(`^[^/]+/metadata/labels/|/helm\.sh/resource-policy$|^NetworkPolicy [^/]+-nats/.*mono-vertex-name$`)

// leaves adds the values below a node by their paths, also those in a text that is YAML itself.
func leaves(all map[string]string, at string, node any) {
	switch n := node.(type) {
	case map[string]any:
		for key, part := range n {
			leaves(all, at+"/"+key, part)
		}
	case []any:
		for i, part := range n {
			named, _ := part.(map[string]any)
			leaves(all, fmt.Sprint(at, "/", cmp.Or(named["name"], any(i))), part)
		}
	default:
		var file map[string]any
		if text := fmt.Sprint(n); yaml.Unmarshal([]byte(text), &file) == nil && file != nil {
			leaves(all, at, file)
		} else if !differs.MatchString(at) {
			all[at] = strings.TrimSpace(text)
		}
	}
}

// The chart deploys the objects of the overlays, and contains copies of their files.
func TestChartDeploysWhatTheOverlaysDo(t *testing.T) {
	objects := func(b bundle) map[string]string {
		all := map[string]string{}
		for _, d := range b.docs {
			text := strings.ReplaceAll(d.String()+"\n"+d.node.MustString(), "throttled-nats", "throttle-nats")
			name, node, _ := strings.Cut(hashes.ReplaceAllString(text, "$1"), "\n")
			leaves(all, name, node)
		}
		return all
	}
	for _, name := range []string{
		"pipeline-jetstream", "pipeline-redis", "pipeline-sentinel", "pipeline-quotas", "monovertex-nats", "buffer", "console",
	} {
		require.Equal(t, objects(overlay(name)), objects(chart(project+"/charts/numathrottle/ci/"+name+".yaml")), name)
	}
	for copied, of := range map[string]string{
		"alerts.yaml": "monitoring/alerts.yaml", "dashboard.json": "monitoring/dashboard.json", "nats.conf": "base/nats/nats.conf",
	} {
		require.Equal(t, file("manifests/"+of), file("charts/numathrottle/files/"+copied), "files/%s is no copy of manifests/%s", copied, of)
	}
}

// The chart refuses wrong values with the name of the value. Values under config end in a ConfigMap: it refuses secrets there, unquoted.
func TestChartRefuses(t *testing.T) {
	const canary = "hunter2-canary"
	for values, says := range map[string]string{
		"storeType: redis":                          "storeType",
		"store: {type: url}":                        "store.url is empty",
		"kind: MonoVertex":                          "store.type is jetstream",
		"llmMap: {concurrency: 100}":                "llmMap.concurrency is 100",
		"image: {tag: latest}":                      "tag",
		"monitoring: {podMonitor: {enabled: true}}": "counted twice",
		"{kind: MonoVertex, store: {type: nats}, llmMap: {enabled: false}}":              "llmMap.enabled is false",
		"llmMap: {quotas: {tags: {a: {totl: 1}}}}":                                       "totl",
		"httpSink: {config: {quotas: {other: {total: 1}}}, quotas: {other: {total: 2}}}": "httpSink.quotas is set, and so is httpSink.config.quotas",
		"httpSink: {config: {max: abc}}":                                                 "/httpSink/config/max",
		"httpSink: {config: {maxx: 5}}":                                                  "maxx",
		"httpSink: {config: {per: 1d}}":                                                  "/httpSink/config/per",
		"llmMap: {config: {max: 5}}":                                                     "value must be 'announced'",
		"llmMap: {config: {per: 5s}}":                                                    "'per' not allowed",
		"console: {enabled: true, tokenSecret: ''}":                                      "/console/tokenSecret",
		"{kind: None, store: {type: nats}, console: {enabled: true}}":                    "store.type is nats",

		"llmMap: {config: {apiKey: " + canary + "}}":                                  "llmMap.config.apiKey is a secret",
		"llmMap: {config: {storePassword: " + canary + "}}":                           "llmMap.config.storePassword is a secret",
		"llmMap: {config: {storeSentinelPassword: " + canary + "}}":                   "storeSentinelPassword is a secret",
		"llmMap: {config: {storeToken: 12345}}":                                       "storeToken is a secret",
		"httpSink: {config: {bearerToken: " + canary + "}}":                           "httpSink.config.bearerToken is a secret",
		"httpSink: {config: {basicPassword: " + canary + "}}":                         "basicPassword is a secret",
		"httpSink: {config: {oauthSecret: " + canary + "}}":                           "oauthSecret is a secret",
		"httpSink: {config: {signatureKey: " + canary + "}}":                          "signatureKey is a secret",
		"httpSink: {config: {awsSecretKey: " + canary + "}}":                          "awsSecretKey is a secret",
		"httpSink: {config: {awsSessionToken: " + canary + "}}":                       "awsSessionToken is a secret",
		"httpSink: {config: {url: 'https://u:" + canary + "@h/x'}}":                   "httpSink.config.url is a URL with a login",
		"httpSink: {config: {url: 'https://h/x?api_key=" + canary + "'}}":             "httpSink.config.url is a URL with a secret in its query",
		"store: {type: url, url: 'redis://:" + canary + "@h:6379', secret: ''}":       "store.url is a URL with a login",
		"httpSink: {config: {headers: 'A: b, Authorization: Bearer " + canary + "'}}": "headers has a header with a secret",
	} {
		_, err := template(values)
		require.ErrorContains(t, err, says, values)
		require.NotContains(t, err.Error(), canary)
	}
	for _, values := range []string{ // accepted by the programs
		`httpSink: {config: {max: "10", per: 1m30s, hard: "true", headers: "A: b", jwtClaims: {a: 1}, modes: {goBackN: {coolDownPeriod: 5s}}, lease: 5s}}`,
		"httpSink: {config: {max: null, modes: scheduled, bearerToken: '', oauthTokenURL: 'https://h/t', url: 'https://h/x?user={{.Key}}', basicUsername: u}}",
		"llmMap: {config: {temperature: 0.2, extraBody: {top_p: 0.5}, deployments: {a: {model: m}}, apiKeyFile: /x, maxTokens: 5, prompt: 'a@b: {{.Text}}'}}",
	} {
		_, err := template(values)
		require.NoError(t, err, values)
	}
}

// Values reach the pods: those of the page, and large figures of quotas, which YAML could write as 1e+06.
func TestValuesOfTheChart(t *testing.T) {
	for _, block := range blocks("charts/numathrottle/README.md", "yaml") {
		rendered, err := template(block)
		require.NoError(t, err)
		for _, has := range []string{"registry.example.com/limits/numathrottle-llm-map:1.4", "requestsPerMinute: 2000", "topic: tickets"} {
			require.Contains(t, rendered, has)
		}
	}
	const quotas = `{"tags":{"acme":{"budgets":[{"amount":5000000,"per":"day"}],"total":20000000}}}`
	var configs []string
	for _, d := range documents(must(template("llmMap: {quotas: " + quotas + "}"))) {
		if text, ok := d.node.GetDataMap()["config.yaml"]; ok {
			configs = append(configs, string(must(yaml.YAMLToJSON([]byte(text)))))
		}
	}
	require.Contains(t, strings.Join(configs, "\n"), `"quotas":`+quotas)
}

// The chart tells the autoscaler the limit, where it knows it; else the number of pods is fixed.
func TestTheScaleOfTheChart(t *testing.T) {
	const step = ", lookbackSeconds: 60, replicasPerScaleUp: 1}\n"
	hint := func(second int) string {
		return fmt.Sprintf("rateLimit: {max: %d, store: {inMemoryStore: {}}}", second)
	}
	for values, has := range map[string][]string{
		"{}": {"scale: {min: 1, max: 4" + step, hint(9)},
		"llmMap: {replicas: 8, minReplicas: 0, config: {requestsPerMinute: '2000'}}":          {"scale: {min: 0, max: 8" + step, hint(33)},
		"llmMap: {messagesPerSecond: 2.5}":                                                    {"scale: {min: 1, max: 4" + step, hint(3)},
		"llmMap: {config: {requestsPerMinute: 600000000}}":                                    {hint(9_800_000)},
		"llmMap: {minReplicas: 4}":                                                            {"scale: {min: 4, max: 4}\n"},
		"llmMap: {config: {requestsPerMinute: null, tokensPerMinute: 90000}, minReplicas: 2}": {"scale: {min: 4, max: 4}\n"},
	} {
		rendered, err := template(values)
		require.NoError(t, err, values)
		for _, part := range has {
			require.Contains(t, rendered, part, values)
		}
		require.Equal(t, len(has) > 1 || strings.HasPrefix(has[0], "rateLimit"), strings.Contains(rendered, "rateLimit"), values)
	}
	_, err := template("llmMap: {minReplicas: 5}")
	require.ErrorContains(t, err, "llmMap.minReplicas is 5: it must be at most llmMap.replicas, 4")
}
