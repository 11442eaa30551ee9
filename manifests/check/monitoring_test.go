package check

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	alerttext "github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/require"
)

// metrics reads docs/metrics.md, whose table a test of the root module keeps equal to what is scraped: the labels of each
// metric, by its name in Prometheus.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(project, "docs/metrics.md"))
	require.NoError(t, err)
	known := map[string][]string{}
	rows := regexp.MustCompile("(?m)^\\| `numathrottle\\.[\\w.]+` \\| `(\\w+)` \\| (\\w+) \\| [^|]+ \\| ([^|]+) \\|")
	for _, row := range rows.FindAllStringSubmatch(string(page), -1) {
		has := regexp.MustCompile(`\w+`).FindAllString(row[3], -1)
		if row[2] != "histogram" {
			known[row[1]] = has
			continue
		}
		known[row[1]+"_bucket"] = append(has, "le")
		known[row[1]+"_count"], known[row[1]+"_sum"] = has, has
	}
	require.Greater(t, len(known), 20)
	return known
}

// reasons reads the values of the label reason from the same page.
func reasons(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(project, "docs/metrics.md"))
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "| reason | held back because |")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	var all []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		all = append(all, row[1])
	}
	require.Greater(t, len(all), 5)
	return all
}

// expressionFaults says what an expression asks for that there is not.
func expressionFaults(text string, known map[string][]string, reasons []string) []string {
	expr, err := parser.ParseExpr(text)
	if err != nil {
		return []string{err.Error()}
	}
	// What Prometheus itself adds.
	usable := []string{"instance", "job", "namespace", "pod"}
	asked := map[string]bool{}
	var found []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			has, ok := known[n.Name]
			if !ok {
				found = append(found, n.Name+" is no metric")
			}
			usable = append(usable, has...)
			for _, m := range n.LabelMatchers {
				found = append(found, matcherFaults(m, has, reasons)...)
			}
		case *parser.AggregateExpr:
			for _, label := range n.Grouping {
				asked[label] = true
			}
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				for _, label := range n.VectorMatching.MatchingLabels {
					asked[label] = true
				}
			}
		}
		return nil
	})
	for _, label := range slices.Sorted(maps.Keys(asked)) {
		if !slices.Contains(usable, label) {
			found = append(found, label+" is no label of these metrics")
		}
	}
	return found
}

func matcherFaults(m *labels.Matcher, has, reasons []string) []string {
	switch {
	case m.Name == model.MetricNameLabel:
		return nil
	case !slices.Contains(has, m.Name):
		return []string{m.Name + " is no label of this metric"}
	case m.Name != "reason":
		return nil
	}
	var found []string
	for value := range strings.SplitSeq(m.Value, "|") {
		if value == "reserved" { // slots_taken, as pods of an older version say
			continue
		}
		if !slices.Contains(reasons, value) {
			found = append(found, value+" is no reason")
		}
	}
	return found
}

// runbookURL is what leads from an alert to its section of the runbook, with the heading's name in small letters behind it.
const runbookURL = "https://github.com/numaproj-contrib/numathrottle/blob/main/docs/operations.md#"

// Alerts are what promtool would accept, ask for metrics that there are, and have a section in the runbook.
func TestAlerts(t *testing.T) {
	file := filepath.Join(manifests, "monitoring/alerts.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	groups, faults := rulefmt.Parse(text, false, model.UTF8Validation)
	require.Empty(t, faults)
	known, why := metrics(t), reasons(t)
	runbook, err := os.ReadFile(filepath.Join(project, "docs/operations.md"))
	require.NoError(t, err)
	for _, g := range groups.Groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			require.Empty(t, expressionFaults(r.Expr, known, why), r.Alert)
			require.Contains(t, []string{"info", "warning", "critical"}, r.Labels["severity"], r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			requireCause(t, r.Annotations, known, why)
			require.Contains(t, string(runbook), "\n### "+r.Alert+"\n", "docs/operations.md does not say what to do")
			require.Equal(t, runbookURL+strings.ToLower(r.Alert), r.Annotations["runbook_url"], "%s does not lead to its section", r.Alert)
		}
	}
}

// requireCause requires that an alert names the command that says what holds callers back, and the reason for which they wait most.
func requireCause(t *testing.T, annotations map[string]string, known map[string][]string, reasons []string) {
	t.Helper()
	const limit = `orders/"in"`
	var asked string
	expand := func(text string, waits promql.Vector) string {
		t.Helper()
		query := func(_ context.Context, q string, _ time.Time) (promql.Vector, error) { asked = q; return waits, nil }
		e := alerttext.NewTemplateExpander(t.Context(), "{{$labels := .Labels}}{{$value := .Value}}"+text, "alert",
			alerttext.AlertTemplateData(map[string]string{"limit": limit}, nil, "", promql.Sample{}), 0, query, nil, nil)
		got, err := e.Expand()
		require.NoError(t, err)
		return got
	}
	require.Equal(t, "numathrottle why "+limit, expand(annotations["why"], nil))
	require.Equal(t, "none", expand(annotations["cause"], nil), "nobody waits")
	require.Equal(t, "quota", expand(annotations["cause"], promql.Vector{{Metric: labels.FromStrings("reason", "quota"), F: 1}}))
	require.Contains(t, asked, `limit="orders/\"in\""`)
	require.Empty(t, expressionFaults(asked, known, reasons))
}

// dashboard is what of a dashboard matters here.
type dashboard struct {
	Panels []struct {
		Type    string `json:"type"`
		Title   string `json:"title"`
		GridPos struct {
			H int `json:"h"`
			W int `json:"w"`
			X int `json:"x"`
			Y int `json:"y"`
		} `json:"gridPos"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

// The dashboard asks for metrics that there are, by variables that it has, and its panels do not overlap.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(manifests, "monitoring/dashboard.json"))
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	known, why := metrics(t), reasons(t)
	variables := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if v.Definition != "" {
			name := regexp.MustCompile(`^label_values\((\w+), limit\)$`).FindStringSubmatch(v.Definition)
			require.NotNil(t, name, v.Definition)
			require.Contains(t, known, name[1])
		}
	}
	for _, name := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, variables, name[1])
	}
	cells, shown := map[string]string{}, map[string]bool{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "1m", "$limit", ".*").Replace(target.Expr)
			require.Empty(t, expressionFaults(expr, known, why), "%s: %s", p.Title, target.Expr)
			for _, name := range regexp.MustCompile(`numathrottle_\w+`).FindAllString(expr, -1) {
				shown[name] = true
			}
		}
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := fmt.Sprint(p.GridPos.X+x, " ", p.GridPos.Y+y)
				require.Empty(t, cells[at], "%s lies on it", p.Title)
				cells[at] = p.Title
			}
		}
	}
	require.Greater(t, len(shown), 15)
}

// The queries of the pages are what can be copied from them.
func TestQueriesOfThePages(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(project, "docs/metrics.md"))
	require.NoError(t, err)
	known, why := metrics(t), reasons(t)
	var queries []string
	for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		queries = append(queries, block[1])
	}
	_, alerts, ok := strings.Cut(string(page), "| query | means |")
	require.True(t, ok)
	alerts, _, _ = strings.Cut(alerts, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(alerts, -1) {
		queries = append(queries, row[1])
	}
	runbook, err := os.ReadFile(filepath.Join(project, "docs/operations.md"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("`([^`\n]*numathrottle_[^`\n]*)`").FindAllStringSubmatch(string(runbook), -1) {
		queries = append(queries, m[1])
	}
	require.Greater(t, len(queries), 10)
	for _, q := range queries {
		require.Empty(t, expressionFaults(q, known, why), q)
	}
}
