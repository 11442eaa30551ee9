package check

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	alerttext "github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/require"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// Telemetry is the content of docs/metrics.md: the labels of each metric in Prometheus, and the values of the label reason. A test of the
// root module compares the page with a scrape.
type telemetry struct {
	labels  map[string][]string
	reasons []string
}

func documented() telemetry {
	page, known := file("docs/metrics.md"), telemetry{labels: map[string][]string{}}
	rows := regexp.MustCompile("(?m)^\\| `numathrottle\\.[\\w.]+` \\| `(\\w+)` \\| (\\w+) \\| [^|]+ \\| ([^|]+) \\|")
	for _, row := range rows.FindAllStringSubmatch(page, -1) {
		has := regexp.MustCompile(`\w+`).FindAllString(row[3], -1)
		if row[2] == "histogram" {
			known.labels[row[1]+"_bucket"] = append(has, "le")
			known.labels[row[1]+"_count"], known.labels[row[1]+"_sum"] = has, has
		} else {
			known.labels[row[1]] = has
		}
	}
	_, table, _ := strings.Cut(page, "| reason | held back because |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		known.reasons = append(known.reasons, row[1])
	}
	known.reasons = append(known.reasons, "reserved") // slots_taken, as pods of an older version say
	if len(known.labels) < 20 || len(known.reasons) < 5 {
		panic("docs/metrics.md has no tables of metrics and reasons")
	}
	return known
}

// faults returns what an expression uses that does not exist.
func (k telemetry) faults(text string) (found []string) {
	expr, err := parser.ParseExpr(text)
	if err != nil {
		return []string{err.Error()}
	}
	usable := []string{"instance", "job", "namespace", "pod"} // added by Prometheus
	var asked []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			has, ok := k.labels[n.Name]
			if !ok {
				found = append(found, n.Name+" is no metric")
			}
			usable = append(usable, has...)
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(has, m.Name) {
					found = append(found, m.Name+" is no label of this metric")
				}
				for value := range strings.SplitSeq(m.Value, "|") {
					if m.Name == "reason" && !slices.Contains(k.reasons, value) {
						found = append(found, value+" is no reason")
					}
				}
			}
		case *parser.AggregateExpr:
			asked = append(asked, n.Grouping...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				asked = append(asked, n.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	for _, label := range asked {
		if !slices.Contains(usable, label) {
			found = append(found, label+" is no label of these metrics")
		}
	}
	return found
}

func TestExpressionFaults(t *testing.T) {
	for expr, says := range map[string]string{
		`numathrottle_tokens_grant_total`:                            "numathrottle_tokens_grant_total is no metric",
		`sum by (tag) (numathrottle_waiting)`:                        "tag is no label of these metrics",
		`numathrottle_waiting{reason="limit"}`:                       "reason is no label of this metric",
		`numathrottle_throttled_time_seconds_total{reason="limits"}`: "limits is no reason",
		`rate(numathrottle_waiting)`:                                 "expected type range vector",
	} {
		require.Contains(t, strings.Join(documented().faults(expr), "\n"), says, expr)
	}
}

// operators are the bundles for the Prometheus operator.
func operators() []bundle {
	return []bundle{overlay("prometheus-operator"), chart(project + "/charts/numathrottle/ci/monitoring.yaml")}
}

// Prometheus accepts the alerts. They use existing metrics, their texts expand, and each leads to its section of the runbook.
func TestAlerts(t *testing.T) {
	text, known, runbook := file("manifests/monitoring/alerts.yaml"), documented(), file("docs/operations.md")
	groups, faults := rulefmt.Parse([]byte(text), false, model.UTF8Validation)
	require.Empty(t, faults)
	lasts := map[string]time.Duration{"NumathrottlePaused": 15 * time.Minute, "NumathrottleOverridden": 24 * time.Hour}
	for _, r := range groups.Groups[0].Rules {
		if want, forgotten := lasts[r.Alert]; forgotten {
			require.Equal(t, want, time.Duration(r.For), r.Alert)
			delete(lasts, r.Alert)
		}
		require.Empty(t, known.faults(r.Expr), r.Alert)
		require.Contains(t, []string{"info", "warning", "critical"}, r.Labels["severity"], r.Alert)
		require.Contains(t, runbook, "\n### "+r.Alert+"\n", "docs/operations.md does not say what to do")
		url := "https://github.com/numaproj-contrib/numathrottle/blob/main/docs/operations.md#" + strings.ToLower(r.Alert)
		require.Equal(t, url, r.Annotations["runbook_url"])
		// Its texts expand. They name the most frequent reason of waits.
		query := func(_ context.Context, q string, _ time.Time) (promql.Vector, error) {
			require.Empty(t, known.faults(q), r.Alert)
			return promql.Vector{{Metric: labels.FromStrings("reason", "quota"), F: 1}}, nil
		}
		data := alerttext.AlertTemplateData(map[string]string{"limit": `orders/"in"`}, nil, "", promql.Sample{})
		for annotation, text := range r.Annotations {
			text = "{{$labels := .Labels}}{{$value := .Value}}" + text
			expanded := must(alerttext.NewTemplateExpander(t.Context(), text, r.Alert, data, 0, query, nil, nil).Expand())
			require.Equal(t, annotation == "cause", expanded == "quota", "%s: %s", r.Alert, expanded)
		}
	}
	for _, b := range operators() {
		spec := must(b.of("PrometheusRule")[0].node.Pipe(kyaml.Lookup("spec")))
		require.YAMLEq(t, text, spec.MustString(), "%s has other rules", b.name)
	}
	require.Empty(t, lasts, "what operators have forgotten is told")
}

// The operator's monitor scrapes every port of the programs in Numaflow's pods.
func TestOperatorScrapesEveryPort(t *testing.T) {
	for _, b := range operators() {
		var spec monitoringv1.PodMonitorSpec
		require.True(t, b.of("PodMonitor")[0].decode(&spec, "spec"))
		var scraped []string
		for i := range spec.PodMetricsEndpoints {
			require.Equal(t, "/metrics", spec.PodMetricsEndpoints[i].Path)
			scraped = append(scraped, *spec.PodMetricsEndpoints[i].Port)
		}
		for _, other := range bundles() {
			for _, p := range other.pods() {
				for _, c := range p.containers() {
					for _, port := range c.Ports {
						if program(&c) != "" && !isConsole(&c) {
							require.True(t, selects(&spec.Selector, p.Labels) && slices.Contains(scraped, port.Name), "%s: %s: %s", other.name, p, port.Name)
						}
					}
				}
			}
		}
	}
}

// The dashboard and the pages use existing metrics.
func TestQueries(t *testing.T) {
	known, page := documented(), file("docs/metrics.md")
	queries := blocks("docs/metrics.md", "promql")
	_, alerts, _ := strings.Cut(page, "| query | means |")
	alerts, _, _ = strings.Cut(alerts, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(alerts, -1) {
		queries = append(queries, row[1])
	}
	for _, m := range regexp.MustCompile("`([^`\n]*numathrottle_[^`\n]*)`").FindAllStringSubmatch(file("docs/operations.md"), -1) {
		queries = append(queries, m[1])
	}
	require.Greater(t, len(queries), 10)
	dashboard := file("manifests/monitoring/dashboard.json")
	require.True(t, json.Valid([]byte(dashboard)))
	for _, m := range regexp.MustCompile(`"expr": ("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(dashboard, -1) {
		queries = append(queries, strings.NewReplacer("$__rate_interval", "1m", "$limit", ".*").Replace(must(strconv.Unquote(m[1]))))
	}
	for _, m := range regexp.MustCompile(`label_values\((\w+), limit\)`).FindAllStringSubmatch(dashboard, -1) {
		queries = append(queries, m[1])
	}
	require.Greater(t, len(queries), 30)
	for _, q := range queries {
		require.Empty(t, known.faults(q), q)
	}
}
