package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// bySchema are the faults that only Numaflow's own schemas show.
var bySchema = []string{"unknown field spec.vertices[0].udf.container.stdin", "must be of type integer"}

// breakages holds one fault for each check: in a document of an overlay the field at the path gets another value, or is removed.
var breakages = []struct{ overlay, document, path, value, says string }{
	{"pipeline-jetstream", "Pipeline throttled", "spec vertices [name=ask] udf container stdin", "true", bySchema[0]},
	{"pipeline-jetstream", "Pipeline throttled", "spec vertices [name=ask] limits concurrency", "many", bySchema[1]},
	{"monovertex-nats", "StatefulSet throttle-nats", "spec template spec containers [name=nats] readonlyRoot", "true", "unknown field"},
	{"pipeline-jetstream", "Pipeline throttled", "spec vertices [name=ask] udf container image", repository + "-llm:v1", "no target llm"},
	{"pipeline-jetstream", "Pipeline throttled", "spec vertices [name=ask] udf container image", repository + "-llm-map", "no fixed tag"},
	{"pipeline-jetstream", "Pipeline throttled", "spec vertices [name=ask] udf container securityContext runAsNonRoot", "", "runAsNonRoot != true"},
	{"monovertex-nats", "StatefulSet throttle-nats", "spec template spec containers [name=nats] securityContext readOnlyRootFilesystem", "", "readOnlyRoot"},
	{"pipeline-redis", "Pipeline throttled", "spec vertices [name=ask] udf container resources limits cpu", "500m", "or limit the processor"},
	{"pipeline-redis", "Pipeline throttled", "spec vertices [name=deliver] scale max", "20", "2 to 20, not fixed"},
	{"pipeline-redis", "Pipeline throttled", "spec vertices [name=ask] limits rateLimit", "", "1 to 4, not fixed"},
	{"pipeline-redis", "Pipeline throttled", "spec vertices [name=ask] limits rateLimit store", "", "no store.inMemoryStore"},
	{"pipeline-redis", "Pipeline throttled", "spec vertices [name=ask] limits rateLimit max", "10", "max is 10, and 98 % of the limit is 9"},
	{"pipeline-redis", "Pipeline throttled", "spec vertices [name=deliver] limits rateLimit", "{max: 10}", "it holds messages back"},
	{"pipeline-python-keda", "ScaledObject python-enrich", "spec scaleTargetRef name", "python-in", "and no other scales it"},
	{"pipeline-python-keda", "ScaledObject python-enrich", "spec minReplicaCount", "0", "without one nothing is measured"},
	{"pipeline-python-keda", "ScaledObject python-enrich", "spec triggers 0 metadata query", "sum(numathrottle_pods)", "is no metric"},
	{"pipeline-python-keda", "ScaledObject python-enrich", "spec triggers 0 metadata ignoreNullValues", "", "ignoreNullValues false"},
	{"pipeline-python-keda", "ScaledObject python-enrich", "spec maxReplicas", "4", "unknown field \"maxReplicas\""},
	{"pipeline-python-hpa", "HorizontalPodAutoscaler python-enrich", "spec metrics 0 external metric selector matchLabels limit", "ask", "about no pool"},
	{"pipeline-python-hpa", "HorizontalPodAutoscaler python-enrich", "spec metrics 0 external target type", "Value", "not an AverageValue of 1"},
	{"pipeline-python-hpa", "HorizontalPodAutoscaler python-enrich", "spec scaleTargetRef kind", "Pipeline", "it scales no vertex"},
	{"pipeline-redis", "Pipeline throttled", "spec vertices [name=ask] limits concurrency", "199", "below 4 x readBatchSize"},
	{"monovertex-nats", "MonoVertex throttled", "spec sink udsink container ports", "[{name: health, containerPort: 8085}]", "two containers have port 8085"},
	{"monovertex-nats", "StatefulSet throttle-nats", "spec template spec containers [name=nats] readinessProbe httpGet port", "web", "asks port web"},
	{"monovertex-nats", "Service throttle-nats", "spec selector", "{app: nats}", "no pod is behind it"},
	{"monovertex-nats", "Service throttled-sink-metrics", "metadata annotations prometheus.io/port", "'8085'", "port 8086 is scraped 0 times"},
	{"buffer", "InterStepBufferService default", "spec jetstream version", "latest", "is not fixed"},
	{"pipeline-redis", "NetworkPolicy throttled", "spec policyTypes", "[Ingress]", "vertex in: no policy closes its Egress"},
	{"pipeline-redis", "NetworkPolicy throttled", "spec ingress", "[{ports: [{protocol: TCP, port: 2469}]}]", "is for all of them"},
	{"pipeline-redis", "NetworkPolicy throttled-redis", "spec egress 0 to 0 podSelector matchLabels", "{app.kubernetes.io/name: c}", "redis] at port 6379"},
	{"pipeline-redis", "NetworkPolicy throttled-redis", "spec egress 0 ports 0 port", "26379", "nobody needs Egress of NetworkPolicy throttled-redis"},
	{"pipeline-one-configmap", "NetworkPolicy one-configmap-calls-out", "spec egress 0 to 0 ipBlock except", "", "no policy allows it Egress with 203.0.113.7"},
	{
		"pipeline-jetstream", "Pipeline throttled", "spec vertices [name=ask] udf container env [name=NUMATHROTTLE_STORE_PASSWORD] valueFrom secretKeyRef key",
		"client-auth-pass", "has no key client-auth-pass",
	},
	{"pipeline-redis", "Pipeline throttled", "spec vertices [name=ask] volumes [name=redis] secret", "{secretName: redis-auth}", "no Secret redis-auth"},
	{"pipeline-redis", "Pipeline throttled", "spec vertices [name=ask] volumes", "", "there is no volume config"},
	{
		"pipeline-jetstream", "Pipeline throttled", "spec vertices [name=ask] udf container env [name=NUMATHROTTLE_STORE_PASSWORD] name",
		"HTTP_SINK_FORMAT", "HTTP_SINK_FORMAT is no variable of llm-map",
	},
	{"pipeline-one-configmap", "ConfigMap throttle-", "data NUMATHROTTLE_PERIOD", "5s", "NUMATHROTTLE_PERIOD"},
	{"pipeline-redis", "ConfigMap throttle-", "data NUMATHROTTLE_STORE_PASSWORD_FILE", "/redis/password", "is /redis/password, where no file is mounted"},
	{"pipeline-jetstream", "ConfigMap throttle-", "data NUMATHROTTLE_STORE", "", "storeUsername"},
	{"pipeline-redis", "ConfigMap throttle-", "data NUMATHROTTLE_HEALTH_ADDR", "':9095'", "and the ports of the container are"},
}

// Each fault is noticed: without this, a check that never fails would look good.
func TestChecksNotice(t *testing.T) {
	for _, br := range breakages {
		t.Run(br.says, func(t *testing.T) {
			if len(definitions()) == 0 && slices.Contains(bySchema, br.says) {
				t.Skip("only a schema of Numaflow's tells")
			}
			b := overlay(br.overlay)
			path := strings.Fields(br.path)
			last, edited := len(path)-1, 0
			for _, d := range b.docs {
				if name := d.String(); name != br.document && (!strings.HasSuffix(br.document, "-") || !strings.HasPrefix(name, br.document)) {
					continue
				}
				edited++
				parent := must(d.node.Pipe(kyaml.LookupCreate(kyaml.MappingNode, path[:last]...)))
				if br.value == "" {
					require.NotNil(t, must(parent.Pipe(kyaml.Clear(path[last]))), "there was no %s", br.path)
				} else {
					require.NoError(t, parent.PipeE(kyaml.SetField(path[last], kyaml.MustParse(br.value))))
				}
			}
			require.Equal(t, 1, edited)
			require.Contains(t, strings.Join(b.check(t), "\n"), br.says)
		})
	}
}
