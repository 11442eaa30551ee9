package opening

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const metricsPage = "../../docs/metrics.md"

// A series is what Prometheus scraped of one metric.
type series struct {
	kind   string
	labels []string // in the order of the alphabet
}

// scrape makes every metric that there is, and returns what Prometheus would see, with the
// metric's name there by its description.
func scrape(t *testing.T) (names map[string]string, found map[string]*series) {
	t.Helper()
	meters, handler, stop, err := health.Prometheus()
	require.NoError(t, err)
	defer func() { require.NoError(t, stop(context.Background())) }()
	telemetry, err := otelthrottle.New(otelthrottle.WithMeterProvider(meters))
	require.NoError(t, err)
	member, err := consensus.Join(t.Context(), memstore.New(), "p", consensus.WithID("a"),
		consensus.WithOnSync(telemetry.OnSync("llm", "memory")), consensus.WithFailFast())
	require.NoError(t, err)
	metered := hook.WithMeter(10).(throttle.Option) //nolint:errcheck,forcetypeassert // as documented
	th, err := throttle.New(throttle.Limit{Max: 100, Adaptive: true}, throttle.WithName("llm"), throttle.WithSharer(member), metered,
		throttle.WithObserver(telemetry), throttle.OnClose(member.Leave), throttle.WithQuotas(throttle.Quotas{
			Tags: map[string]throttle.Quota{"acme": {Budgets: []throttle.Budget{{Amount: 1e6, Per: "day"}}}},
		}))
	require.NoError(t, err)
	defer th.Close()
	slots, err := throttle.NewInFlight(3, throttle.WithName("calls"), throttle.WithQuotas(throttle.Quotas{Other: throttle.Quota{Total: 2}}))
	require.NoError(t, err)
	for _, w := range []otelthrottle.Watched{{Throttle: th, Member: member, Tags: []string{"acme"}}, {InFlight: slots}} {
		_, err := telemetry.Watch(w)
		require.NoError(t, err)
	}
	_, err = th.Acquire(t.Context(), 100)
	require.NoError(t, err)
	_, err = th.ForTag("acme").Acquire(t.Context(), 1)
	require.NoError(t, err)
	hook.Meters(th).Ran(time.Second)
	for range 10 { // so that the service limits it
		th.ReportFor(1, time.Now(), throttle.OutcomeRefused, "acme")
	}

	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	names, found = map[string]string{}, map[string]*series{}
	label := regexp.MustCompile(`(\w+)="`)
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		line := lines.Text()
		name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), " ")
		switch {
		case strings.HasPrefix(line, "# HELP "):
			names[rest] = name
		case strings.HasPrefix(line, "# TYPE "):
			found[name] = &series{kind: rest}
		default:
			name, _, _ := strings.Cut(line, "{")
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base := strings.TrimSuffix(name, suffix); found[base] != nil {
					name = base
				}
			}
			for _, match := range label.FindAllStringSubmatch(line, -1) {
				if s := found[name]; match[1] != "le" && !slices.Contains(s.labels, match[1]) {
					s.labels = append(s.labels, match[1])
				}
			}
		}
	}
	delete(found, "target_info")
	for _, s := range found {
		slices.Sort(s.labels)
	}
	return names, found
}

// TestMetricsPage compares the page with the instruments that exist, and these with what
// Prometheus scrapes. With -update it writes the table.
func TestMetricsPage(t *testing.T) {
	names, found := scrape(t)
	var table strings.Builder
	table.WriteString("| Metric | In Prometheus | Kind | Unit | Labels | What it says |\n|---|---|---|---|---|---|\n")
	instruments := otelthrottle.Instruments()
	for _, in := range instruments {
		name := names[in.Doc]
		require.NotEmpty(t, name, "%s is not scraped", in.Name)
		labels := slices.Sorted(slices.Values(in.Labels))
		require.Equal(t, &series{kind: in.Kind, labels: labels}, found[name], in.Name)
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | `%s` | `%s` | %s |\n",
			in.Name, name, in.Kind, in.Unit, strings.Join(in.Labels, "`, `"), in.Doc)
	}
	require.Len(t, found, len(instruments), "nothing is scraped that is not in the table")

	content, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	page := string(content)
	before, rest, ok := strings.Cut(page, "<!-- metrics:")
	require.True(t, ok)
	comment, rest, _ := strings.Cut(rest, "\n")
	_, after, ok := strings.Cut(rest, "<!-- end -->")
	require.True(t, ok)
	want := before + "<!-- metrics:" + comment + "\n" + table.String() + "<!-- end -->" + after
	if *update {
		require.NoError(t, os.WriteFile(metricsPage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, page, "run: go test . -run TestMetricsPage -update")

	// The queries ask for what there is, and the reasons are those that there are.
	for _, name := range regexp.MustCompile(`numathrottle_\w+`).FindAllString(page, -1) {
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
		require.True(t, found[name] != nil || found[base] != nil && found[base].kind == "histogram", "%s is no metric", name)
	}
	_, reasons, _ := strings.Cut(page, "| reason | held back because |")
	reasons, _, _ = strings.Cut(reasons, "\n\n")
	var listed []throttle.Reason
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(reasons, -1) {
		listed = append(listed, throttle.Reason(match[1]))
	}
	require.ElementsMatch(t, throttle.Reasons(), listed)
}
