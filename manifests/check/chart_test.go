package check

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// chartFolder is the chart, and release the name under which the tests render it: that of the overlays' resources.
const (
	chartFolder = project + "/charts/numathrottle"
	release     = "throttled"
)

// template renders the chart with the text of a file of values, as `helm template` does. The notes are not part of it.
func template(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	loaded, err := loader.Load(chartFolder)
	require.NoError(t, err)
	given, err := chartutil.ReadValues([]byte(values))
	require.NoError(t, err, values)
	options := chartutil.ReleaseOptions{Name: release, Namespace: "default", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(loaded, given, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	for name := range rendered {
		if filepath.Ext(name) != ".yaml" {
			delete(rendered, name)
		}
	}
	return rendered, nil
}

// chart renders the chart with the values of one of its examples.
func chart(t *testing.T, example string) bundle {
	t.Helper()
	values, err := os.ReadFile(filepath.Join(chartFolder, "ci", example+".yaml"))
	require.NoError(t, err)
	rendered, err := template(t, string(values))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(manifests, "README.md"))
	require.NoError(t, err)
	b := bundle{name: "chart-" + example, page: string(page)}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		for _, part := range regexp.MustCompile(`(?m)^---$`).Split(rendered[name], -1) {
			if strings.Contains(part, "\nkind: ") {
				b.docs = append(b.docs, newDocument(t, part))
			}
		}
	}
	require.NotEmpty(t, b.docs, example)
	return b
}

// charts renders the chart with each of its examples.
func charts(t *testing.T) []bundle {
	t.Helper()
	files, err := filepath.Glob(chartFolder + "/ci/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []bundle
	for _, file := range files {
		all = append(all, chart(t, strings.TrimSuffix(filepath.Base(file), ".yaml")))
	}
	return all
}

// What the chart renders passes every check of the overlays: schemas, rules, and the programs' own look at their settings.
func TestChartPassesTheChecks(t *testing.T) {
	known, programs := definitions(t), build(t)
	for _, b := range charts(t) {
		t.Run(b.name, func(t *testing.T) { require.Empty(t, allFaults(t, b, known, programs)) })
	}
}

// The chart deploys what the overlays do: the same objects, but for the labels and the hashes in names.
func TestChartDeploysWhatTheOverlaysDo(t *testing.T) {
	for example, overlay := range map[string]string{
		"pipeline-jetstream": "pipeline-jetstream", "pipeline-redis": "pipeline-redis", "pipeline-sentinel": "pipeline-sentinel",
		"pipeline-quotas": "pipeline-quotas",
		"monovertex-nats": "monovertex-nats", "buffer": "buffer", "console": "console",
	} {
		t.Run(example, func(t *testing.T) {
			want, got := normal(t, render(t, manifests+"/overlays/"+overlay)), normal(t, chart(t, example))
			require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
			for name, text := range want {
				require.JSONEq(t, text, got[name], name)
			}
		})
	}
}

// normal is a bundle in a form in which those of kustomize and of helm can be compared, by kind and name.
func normal(t *testing.T, b bundle) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, d := range b.docs {
		require.NoError(t, d.node.PipeE(yaml.Lookup("metadata"), yaml.Clear("labels")))
		if annotations := d.node.GetAnnotations(); annotations["helm.sh/resource-policy"] != "" {
			require.NoError(t, d.node.PipeE(yaml.Lookup("metadata"), yaml.Clear("annotations")))
		}
		// Settings are files within a text, with comments here and without them there.
		data := d.node.GetDataMap()
		if config, ok := data["config.yaml"]; ok {
			parsed, err := yaml.Parse(config)
			require.NoError(t, err)
			text, err := parsed.MarshalJSON()
			require.NoError(t, err)
			data["config.yaml"] = string(text)
		}
		if config, ok := data["nats.conf"]; ok {
			data["nats.conf"] = strings.TrimSpace(config)
		}
		if len(data) > 0 {
			d.node.SetDataMap(data)
		}
		text := strings.ReplaceAll(d.node.MustString(), release+"-nats", "throttle-nats")
		if d.kind == "NetworkPolicy" && strings.HasSuffix(d.name, "-nats") {
			// The chart's server is for the pods of its release, that of the overlay for every MonoVertex of the namespace.
			text = regexp.MustCompile(`(?m)^ *numaflow.numaproj.io/mono-vertex-name: .*\n`).ReplaceAllString(text, "")
		}
		digest := regexp.MustCompile(`\b(?:` + release + `-)?(ask|deliver|throttle|throttle-nats|console|` +
			release + `-console)-(?:[0-9a-f]{8}|[0-9a-z]{10})\b`)
		text = digest.ReplaceAllString(text, "$1")
		again := newDocument(t, text)
		content, err := again.content()
		require.NoError(t, err)
		sortByName(content)
		sorted, err := json.Marshal(content)
		require.NoError(t, err)
		all[again.String()] = string(sorted)
	}
	return all
}

// sortByName puts the items of lists that have names in the order of these: a patch of kustomize's puts what it has changed first.
func sortByName(node any) {
	switch n := node.(type) {
	case map[string]any:
		for _, part := range n {
			sortByName(part)
		}
	case []any:
		for _, part := range n {
			sortByName(part)
		}
		name := func(item any) string {
			fields, _ := item.(map[string]any)
			named, _ := fields["name"].(string)
			return named
		}
		slices.SortStableFunc(n, func(a, b any) int { return strings.Compare(name(a), name(b)) })
	}
}

// Files that the chart brings are those of the manifests.
func TestFilesOfTheChart(t *testing.T) {
	for copied, of := range map[string]string{
		"alerts.yaml": "monitoring/alerts.yaml", "dashboard.json": "monitoring/dashboard.json", "nats.conf": "base/nats/nats.conf",
	} {
		got, err := os.ReadFile(filepath.Join(chartFolder, "files", copied))
		require.NoError(t, err)
		want, err := os.ReadFile(filepath.Join(manifests, of))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "charts/numathrottle/files/%s is another file than manifests/%s", copied, of)
	}
}

// Wrong values are refused with the name of the value.
func TestChartRefuses(t *testing.T) {
	for values, says := range map[string]string{
		"storeType: redis":                          "storeType",
		"store: {type: etcd}":                       "store",
		"store: {type: url}":                        "store.url is empty",
		"kind: MonoVertex":                          "store.type is jetstream",
		"llmMap: {replicas: 0}":                     "replicas",
		"llmMap: {concurrency: 100}":                "llmMap.concurrency is 100",
		"image: {tag: latest}":                      "tag",
		"interStepBuffer: {version: latest}":        "version",
		"monitoring: {podMonitor: {enabled: 1}}":    "enabled",
		"monitoring: {podMonitor: {enabled: true}}": "counted twice",
		"{kind: MonoVertex, store: {type: nats}, llmMap: {enabled: false}}": "llmMap.enabled is false",
		"{kind: Deployment}":                                                             "kind",
		"llmMap: {quotas: {tags: {a: {totl: 1}}}}":                                       "totl",
		"llmMap: {quotas: {tags: {a: {total: -1}}}}":                                     "total",
		"llmMap: {quotas: {tag: {}}}":                                                    "tag",
		"httpSink: {quotas: {other: {class: slow}}}":                                     "class",
		"httpSink: {quotas: {other: {budgets: [{amount: 5}]}}}":                          "per",
		"httpSink: {config: {quotas: {other: {total: 1}}}, quotas: {other: {total: 2}}}": "httpSink.quotas is set, and so is httpSink.config.quotas",
		// Settings of the programs: unknown names, and values of another form.
		"httpSink: {config: {max: abc}}":                              "/httpSink/config/max",
		"httpSink: {config: {max: 0.5}}":                              "/httpSink/config/max",
		"httpSink: {config: {maxx: 5}}":                               "maxx",
		"httpSink: {config: {per: 60}}":                               "/httpSink/config/per",
		"httpSink: {config: {per: 1d}}":                               "/httpSink/config/per",
		"httpSink: {config: {hard: maybe}}":                           "/httpSink/config/hard",
		"httpSink: {config: {format: xml}}":                           "/httpSink/config/format",
		"httpSink: {config: {maxAttempts: 1000}}":                     "/httpSink/config/maxAttempts",
		"httpSink: {config: {url: [a]}}":                              "/httpSink/config/url",
		"llmMap: {config: {requestsPerMinute: many}}":                 "/llmMap/config/requestsPerMinute",
		"llmMap: {config: {max: 5}}":                                  "'max' not allowed",
		"llmMap: {config: {rampUpDuration: 10}}":                      "/llmMap/config/rampUpDuration",
		"llmMap: {config: {deployments: [a]}}":                        "/llmMap/config/deployments",
		"llmMap: {config: {onStoreLoss: explode}}":                    "/llmMap/config/onStoreLoss",
		"console: {enabld: true}":                                     "enabld",
		"console: {enabled: 1}":                                       "/console/enabled",
		"console: {enabled: true, tokenSecret: ''}":                   "/console/tokenSecret",
		"console: {enabled: true, quotas: {tags: {a: {totl: 1}}}}":    "totl",
		"{kind: None, store: {type: nats}, console: {enabled: true}}": "store.type is nats",
	} {
		_, err := template(t, values)
		require.ErrorContains(t, err, says, values)
	}
	// Whatever the programs take.
	for _, values := range []string{
		`httpSink: {config: {max: "10", per: 1m30s, hard: "true", headers: "A: b", jwtClaims: {a: 1}, modes: {goBackN: {coolDownPeriod: 5s}}, lease: 5s}}`,
		"httpSink: {config: {max: null, modes: scheduled, logLevel: debug, logFormat: json, pool: p}}",
		"llmMap: {config: {temperature: 0.2, min: 5, rampUpDuration: 10m, extraBody: {top_p: 0.5}, deployments: {a: {model: m}}, adaptive: true}}",
	} {
		_, err := template(t, values)
		require.NoError(t, err, values)
	}
}

// What stands under config ends in a ConfigMap: secrets are refused there, without a word of them, and nothing else is.
func TestTheChartTakesNoSecrets(t *testing.T) {
	const canary = "hunter2-canary"
	for values, says := range map[string]string{
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
		"httpSink: {config: {apiKey: " + canary + "}}":                                "httpSink.config.apiKey is a secret",
		"httpSink: {config: {token: " + canary + "}}":                                 "'token' not allowed",
		"httpSink: {config: {url: 'https://u:" + canary + "@h/x'}}":                   "httpSink.config.url is a URL with a login",
		"httpSink: {config: {url: 'https://h/x?api_key=" + canary + "'}}":             "httpSink.config.url is a URL with a secret in its query",
		"httpSink: {config: {proxy: 'http://u:" + canary + "@h'}}":                    "httpSink.config.proxy is a URL with a login",
		"llmMap: {config: {store: 'redis://:" + canary + "@h:6379'}}":                 "llmMap.config.store is a URL with a login",
		"llmMap: {config: {store: ['redis://h', 'redis://:" + canary + "@g']}}":       "/llmMap/config/store",
		"store: {type: url, url: 'redis://:" + canary + "@h:6379', secret: ''}":       "store.url is a URL with a login",
		"httpSink: {config: {headers: {Authorization: Bearer " + canary + "}}}":       "/httpSink/config/headers",
		"httpSink: {config: {headers: 'A: b, Authorization: Bearer " + canary + "'}}": "headers has a header with a secret",
		"httpSink: {config: {headers: {X-Api-Key: " + canary + "}}}":                  "/httpSink/config/headers",
	} {
		_, err := template(t, values)
		require.ErrorContains(t, err, says, values)
		require.NotContains(t, err.Error(), canary)
	}
	_, err := template(t, "llmMap: {config: {apiKeyFile: /x, maxTokens: 5, tokensPerMinute: 7, prompt: 'a@b: {{.Text}}'}}\n"+
		"httpSink: {config: {bearerToken: '', bearerTokenFile: /x, oauthTokenURL: 'https://h/t', url: 'https://h/x?user={{.Key}}', basicUsername: u}}")
	require.NoError(t, err)
}

// Every value is described where it stands, and the page's values render.
func TestValuesOfTheChart(t *testing.T) {
	text, err := os.ReadFile(chartFolder + "/values.yaml")
	require.NoError(t, err)
	comment := false
	for line := range strings.SplitSeq(string(text), "\n") {
		if regexp.MustCompile(`^[a-zA-Z]+:`).MatchString(line) {
			require.True(t, comment, "nothing is said of %s", line)
		}
		comment = strings.HasPrefix(strings.TrimSpace(line), "#")
	}
	for _, block := range blocks(t, "charts/numathrottle/README.md") {
		files, err := template(t, block)
		require.NoError(t, err)
		rendered := strings.Join(slices.Collect(maps.Values(files)), "\n")
		require.Contains(t, rendered, "registry.example.com/limits/numathrottle-llm-map:1.4")
		require.Contains(t, rendered, "requestsPerMinute: 2000")
		require.Contains(t, rendered, "topic: tickets")
	}
}

// Quotas of both programs are in their files, as the values say them: also for figures that YAML could write as 1e+06.
func TestQuotasOfTheChart(t *testing.T) {
	files, err := template(t, `
llmMap: {quotas: {tags: {acme: {total: 20000000, budgets: [{amount: 5000000, per: day}]}}}}
httpSink: {quotas: {match: [{tag: "*.example.com", total: 5}], other: {weight: 3}}}
`)
	require.NoError(t, err)
	var configs []map[string]any
	for part := range strings.SplitSeq(files["numathrottle/templates/configmaps.yaml"], "\n---\n") {
		if config, ok := newDocument(t, part).node.GetDataMap()["config.yaml"]; ok {
			var parsed map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(config), &parsed))
			configs = append(configs, parsed)
		}
	}
	require.Len(t, configs, 2)
	require.Equal(t, map[string]any{"tags": map[string]any{"acme": map[string]any{
		"total": 20000000, "budgets": []any{map[string]any{"amount": 5000000, "per": "day"}},
	}}}, configs[0]["quotas"])
	require.Equal(t, map[string]any{
		"match": []any{map[string]any{"tag": "*.example.com", "total": 5}}, "other": map[string]any{"weight": 3},
	}, configs[1]["quotas"])
}
