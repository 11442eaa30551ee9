package check

import (
	"os"
	"path/filepath"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// The rules for the operator are those of the file that Prometheus reads by itself.
func TestOperatorHasTheSameAlerts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(manifests, monitoring, "alerts.yaml"))
	require.NoError(t, err)
	want, err := yaml.Parse(string(text))
	require.NoError(t, err)
	for _, b := range []bundle{render(t, manifests+"/overlays/prometheus-operator"), chart(t, "monitoring")} {
		require.Len(t, b.of("PrometheusRule"), 1, b.name)
		spec, err := b.of("PrometheusRule")[0].node.Pipe(yaml.Lookup("spec"))
		require.NoError(t, err)
		require.YAMLEq(t, want.MustString(), spec.MustString(), b.name)
	}
}

// The operator's monitor finds every port of the programs in every pod of Numaflow's, and no port that nobody has.
func TestOperatorScrapesEveryPort(t *testing.T) {
	for _, b := range []bundle{render(t, manifests+"/overlays/prometheus-operator"), chart(t, "monitoring")} {
		var spec monitoringv1.PodMonitorSpec
		require.True(t, b.of("PodMonitor")[0].decode(t, &spec, "spec"))
		unused := map[string]bool{}
		for i := range spec.PodMetricsEndpoints {
			require.Equal(t, "/metrics", spec.PodMetricsEndpoints[i].Path)
			unused[*spec.PodMetricsEndpoints[i].Port] = true
		}
		scraped := map[string]bool{}
		for name := range unused {
			scraped[name] = true
		}
		for _, other := range overlays(t) {
			for _, p := range other.pods(t) {
				for i := range p.containers {
					c := &p.containers[i]
					for _, port := range c.Ports {
						if c.program() == "" || isConsole(c) {
							continue
						}
						require.True(t, selects(t, &spec.Selector, p.labels), "%s: %s", other.name, p)
						require.True(t, scraped[port.Name], "%s: %s, port %s", other.name, p, port.Name)
						delete(unused, port.Name)
					}
				}
			}
		}
		require.Empty(t, unused, b.name)
	}
}
