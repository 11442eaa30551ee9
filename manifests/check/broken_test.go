package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// A breakage is one thing that is made wrong in what an overlay renders to, and what has to be said of it.
type breakage struct {
	name   string
	in     target
	edit   func(t *testing.T, node *yaml.RNode)
	says   string
	custom bool // only the definitions of Numaflow's resources tell
}

// A target is a document of an overlay. A name that ends in a dash is the beginning of one that ends in a hash.
type target struct{ overlay, kind, name string }

// The documents that are broken.
var (
	onJetStream     = target{"pipeline-jetstream", "Pipeline", "throttled"}
	onRedis         = target{"pipeline-redis", "Pipeline", "throttled"}
	mono            = target{"monovertex-nats", "MonoVertex", "throttled"}
	buffer          = target{"buffer", "InterStepBufferService", "default"}
	ownServer       = target{"monovertex-nats", "StatefulSet", "throttle-nats"}
	policy          = target{"pipeline-jetstream", "NetworkPolicy", "throttled"}
	service         = target{"monovertex-nats", "Service", "throttle-nats"}
	redisPolicy     = target{"pipeline-redis", "NetworkPolicy", "throttled-redis"}
	redisOthers     = target{"pipeline-redis", "NetworkPolicy", "throttled"}
	oneCallsOut     = target{"pipeline-one-configmap", "NetworkPolicy", "one-configmap-calls-out"}
	firstReceiver   = target{"first-pipeline", "NetworkPolicy", "receiver"}
	sinkMetrics     = target{"monovertex-nats", "Service", "throttled-sink-metrics"}
	oneConfigMap    = target{"pipeline-one-configmap", "ConfigMap", "throttle-"}
	askFile         = target{"pipeline-jetstream", "ConfigMap", "ask-"}
	deliverFile     = target{"pipeline-jetstream", "ConfigMap", "deliver-"}
	redisShared     = target{"pipeline-redis", "ConfigMap", "throttle-"}
	jetStreamShared = target{"pipeline-jetstream", "ConfigMap", "throttle-"}
)

// set gives the field at the end of a path another value: of YAML, empty to remove it.
func set(value string, path ...string) func(*testing.T, *yaml.RNode) {
	return func(t *testing.T, node *yaml.RNode) {
		t.Helper()
		last := len(path) - 1
		parent, err := node.Pipe(yaml.LookupCreate(yaml.MappingNode, path[:last]...))
		require.NoError(t, err)
		if value == "" {
			cleared, err := parent.Pipe(yaml.Clear(path[last]))
			require.NoError(t, err)
			require.NotNil(t, cleared, "there was no %v", path)
			return
		}
		require.NoError(t, parent.PipeE(yaml.SetField(path[last], yaml.MustParse(value))))
	}
}

// replace changes a text in the data of a ConfigMap.
func replace(key, from, to string) func(*testing.T, *yaml.RNode) {
	return func(t *testing.T, node *yaml.RNode) {
		t.Helper()
		data := node.GetDataMap()
		require.Contains(t, data[key], from)
		data[key] = strings.ReplaceAll(data[key], from, to)
		node.SetDataMap(data)
	}
}

// The parts of a pipeline that the breakages are about.
var (
	ask     = []string{"spec", "vertices", "[name=ask]"}
	udf     = append(ask[:3:3], "udf", "container")
	deliver = []string{"spec", "vertices", "[name=deliver]"}
	udsink  = append(deliver[:3:3], "sink", "udsink", "container")
	nats    = []string{"spec", "template", "spec", "containers", "[name=nats]"}
)

func at(base []string, more ...string) []string { return append(slices.Clip(base), more...) }

var breakages = []breakage{
	{
		"an unknown field of a container", onJetStream, set("true", at(udf, "stdin")...),
		"unknown field spec.vertices[0].udf.container.stdin", true,
	},
	{
		"an unknown field of a vertex", onRedis, set("4", at(ask, "replicas")...),
		"unknown field spec.vertices[0].replicas", true,
	},
	{
		"a handler of a probe", onJetStream, set("{path: /healthz, port: 8085}", at(udf, "livenessProbe", "httpGet")...),
		"livenessProbe.httpGet", true,
	},
	{
		"a value of the wrong type", onJetStream, set("many", at(ask, "limits", "concurrency")...),
		"must be of type integer", true,
	},
	{
		"a value below the least", mono, set("0", "spec", "limits", "readBatchSize"),
		"should be greater than or equal to 1", true,
	},
	{
		"an unknown field of a buffer", buffer, set("2Gi", "spec", "jetstream", "storage"),
		"unknown field spec.jetstream.storage", true,
	},
	{
		"an unknown field of Kubernetes' own", ownServer, set("true", at(nats, "readonlyRootFilesystem")...),
		"unknown field", false,
	},
	{
		"an unknown field of a policy", policy, set("[Egress]", "spec", "policyType"),
		"unknown field", false,
	},

	{
		"another image", onJetStream, set("example.com/llm-map:v1", at(udf, "image")...),
		"neither built here nor known", false,
	},
	{
		"an image of no program", onJetStream, set(repository+"llm:v1", at(udf, "image")...),
		"of no program", false,
	},
	{
		"an image without a tag", onJetStream, set(repository+"llm-map", at(udf, "image")...),
		"no fixed tag", false,
	},

	{
		"seccomp of a container", onJetStream, set("{type: Unconfined}", at(udf, "securityContext", "seccompProfile")...),
		"seccompProfile is not RuntimeDefault", false,
	},
	{
		"seccomp of a pod", onJetStream, set("", at(ask, "securityContext")...),
		"the pod has no seccompProfile", false,
	},
	{
		"root", onJetStream, set("", at(udsink, "securityContext", "runAsNonRoot")...),
		"runAsNonRoot is not true", false,
	},
	{
		"the user 0", onJetStream, set("0", at(udsink, "securityContext", "runAsUser")...),
		"runAsUser", false,
	},
	{
		"a root that can be written to", ownServer, set("", at(nats, "securityContext", "readOnlyRootFilesystem")...),
		"readOnlyRootFilesystem is not true", false,
	},
	{
		"escalation", mono, set("true", "spec", "udf", "container", "securityContext", "allowPrivilegeEscalation"),
		"allowPrivilegeEscalation is not false", false,
	},
	{
		"capabilities", onRedis, set("{drop: [NET_RAW]}", at(udf, "securityContext", "capabilities")...),
		"capabilities are not dropped", false,
	},
	{
		"a token of the API server", onRedis, set("", at(ask, "automountServiceAccountToken")...),
		"token of the API server", false,
	},

	{
		"no limit of memory", onRedis, set("", at(udf, "resources", "limits")...),
		"limit of memory", false,
	},
	{
		"a limit of the processor", onRedis, set("500m", at(udf, "resources", "limits", "cpu")...),
		"the processor is limited", false,
	},
	{
		"a scale that is not fixed", onRedis, set("20", at(ask, "scale", "max")...),
		"4 to 20, not fixed", false,
	},
	{
		"no room for waiting messages", onRedis, set("199", at(ask, "limits", "concurrency")...),
		"below 4 x readBatchSize", false,
	},
	{
		"a limit of Numaflow's own", onRedis, set("{max: 5}", at(ask, "limits", "rateLimit")...),
		"a rateLimit of Numaflow's own", false,
	},

	{
		"a wrong key of a Secret", onJetStream,
		set("client-auth-pass", at(udf, "env", "[name=NUMATHROTTLE_STORE_PASSWORD]", "valueFrom", "secretKeyRef", "key")...),
		"has no key client-auth-pass", false,
	},
	{
		"a Secret that nobody makes", onRedis, set("{secretName: redis-auth}", at(ask, "volumes", "[name=redis]", "secret")...),
		"nobody makes a Secret redis-auth", false,
	},
	{
		"a ConfigMap that is not there", onRedis, set("{name: limits}", at(ask, "volumes", "[name=config]", "configMap")...),
		"there is no ConfigMap limits", false,
	},
	{
		"a buffer that is not there", onJetStream, set("other", "spec", "interStepBufferServiceName"),
		"nobody makes a Secret isbsvc-default-js-client-auth", false,
	},
	{
		"a volume that is not there", onRedis, set("", at(ask, "volumes")...),
		"there is no volume config", false,
	},
	{
		"a port of two containers", mono, set("[{name: health, containerPort: 8085}]", "spec", "sink", "udsink", "container", "ports"),
		"two containers have port 8085", false,
	},
	{
		"a probe of no port", ownServer, set("web", at(nats, "readinessProbe", "httpGet", "port")...),
		"readiness probe asks port web", false,
	},
	{
		"no probe", ownServer, set("", at(nats, "startupProbe")...),
		"no startup probe", false,
	},
	{
		"a scrape of no port", onRedis, set("'9095'", at(ask, "metadata", "annotations", "prometheus.io/port")...),
		"prometheus.io/port is 9095", false,
	},
	{
		"a Service of no pod", service, set("{app: nats}", "spec", "selector"),
		"no pod is behind it", false,
	},
	{
		"a policy for no vertex", redisPolicy, set("{matchLabels: {numaflow.numaproj.io/pipeline-name: other}}", "spec", "podSelector"),
		"it is for no pod", false,
	},
	{
		"a port that no policy opens", redisOthers, set("[]", "spec", "ingress"),
		"no policy allows it Ingress with monitoring at port 8085", false,
	},
	{
		"pods that are open", redisOthers, set("[Ingress]", "spec", "policyTypes"),
		"vertex in: no policy closes its Egress", false,
	},
	{
		"a policy for anybody", redisOthers, set("[{ports: [{protocol: TCP, port: 2469}]}]", "spec", "ingress"),
		"is for all of them", false,
	},
	{
		"a policy for another than the store", redisPolicy, set("[{to: [{podSelector: {matchLabels: {app.kubernetes.io/name: cache}}}], "+
			"ports: [{protocol: TCP, port: 6379}]}]", "spec", "egress"),
		"vertex ask: no policy allows it Egress with map[app.kubernetes.io/name:redis] at port 6379/TCP", false,
	},
	{
		"a policy for more than the store", redisPolicy, set("26379", "spec", "egress", "0", "ports", "0", "port"),
		"nobody needs Egress of NetworkPolicy throttled-redis, port 26379/TCP", false,
	},
	{
		"a policy that lets out to the cluster", oneCallsOut, set("", "spec", "egress", "0", "to", "0", "ipBlock", "except"),
		"vertex orders: no policy allows it Egress with 203.0.113.7 at port 443/TCP", false,
	},
	{
		"a receiver that the sink may not call", firstReceiver,
		set("{numaflow.numaproj.io/vertex-name: in}", "spec", "ingress", "0", "from", "0", "podSelector", "matchLabels"),
		"Deployment receiver: no policy allows it Ingress with", false,
	},
	{
		"a port that is not scraped", sinkMetrics, set("'8085'", "metadata", "annotations", "prometheus.io/port"),
		"container udsink: port 8086 is scraped 0 times", false,
	},
	{
		"a port that is scraped twice", sinkMetrics, set("'8085'", "metadata", "annotations", "prometheus.io/port"),
		"container udf: port 8085 is scraped 2 times", false,
	},

	{
		"no label of what it is a part of", policy, set("", "metadata", "labels", "app.kubernetes.io/part-of"),
		"NetworkPolicy throttled: it is not labelled as a part of numathrottle", false,
	},
	{
		"no name among the labels", onRedis, set("", "metadata", "labels", "app.kubernetes.io/name"),
		"Pipeline throttled: it has no label app.kubernetes.io/name", false,
	},
	{
		"a buffer of a version that moves", buffer, set("latest", "spec", "jetstream", "version"),
		"its version is not fixed", false,
	},
	{
		"a monitor of an unknown field",
		target{"prometheus-operator", "PodMonitor", "numathrottle"},
		set("[health]", "spec", "ports"),
		"unknown field", false,
	},

	{
		"a wrong variable", onJetStream, set("NUMATHROTTLE_STORE_PASWORD", at(udf, "env", "[name=NUMATHROTTLE_STORE_PASSWORD]", "name")...),
		"did you mean NUMATHROTTLE_STORE_PASSWORD", false,
	},
	{
		"a variable of another program", onJetStream, set("LLM_MAP_MODEL", at(udsink, "env", "[name=NUMATHROTTLE_STORE_PASSWORD]", "name")...),
		"LLM_MAP_MODEL is no variable of http-sink", false,
	},
	{
		"a wrong variable of a ConfigMap", oneConfigMap, set("5s", "data", "NUMATHROTTLE_PERIOD"),
		"NUMATHROTTLE_PERIOD", false,
	},
	{
		"a wrong key of a file", askFile, replace("config.yaml", "requestsPerMinute", "requestPerMinute"),
		"requestPerMinute", false,
	},
	{
		"a wrong value of a file", deliverFile, replace("config.yaml", "onInvalid: fallback", "onInvalid: retry"),
		"onInvalid", false,
	},
	{
		"a file that nothing is mounted at", redisShared, replace("NUMATHROTTLE_STORE_PASSWORD_FILE", "/redis/", "/redis/auth/"),
		"NUMATHROTTLE_STORE_PASSWORD_FILE is /var/run/secrets/redis/auth/password", false,
	},
	{
		"no store", jetStreamShared, set("", "data", "NUMATHROTTLE_STORE"),
		"storeUsername", false,
	},
	{
		"another port for probes and metrics", redisShared, set("':9095'", "data", "NUMATHROTTLE_HEALTH_ADDR"),
		"healthAddr is :9095", false,
	},
}

// Each thing that can be wrong is noticed: without this, a check that never fails would look like a good one.
func TestChecksNotice(t *testing.T) {
	known := definitions(t)
	programs := build(t)
	for _, br := range breakages {
		t.Run(br.name, func(t *testing.T) {
			if br.custom {
				needDefinitions(t, known)
			}
			b := render(t, manifests+"/overlays/"+br.in.overlay)
			edited := 0
			for _, d := range b.of(br.in.kind) {
				if d.name == br.in.name || strings.HasSuffix(br.in.name, "-") && strings.HasPrefix(d.name, br.in.name) {
					br.edit(t, d.node)
					edited++
				}
			}
			require.Equal(t, 1, edited)
			require.Contains(t, strings.Join(allFaults(t, b, known, programs), "\n"), br.says)
		})
	}
}

// allFaults is what all checks of a bundle say.
func allFaults(t *testing.T, b bundle, known map[string]definition, programs string) []string {
	t.Helper()
	found := schemaFaults(t, b, known)
	if len(found) > 0 {
		return found // the others read the documents as the types that they should be
	}
	for _, r := range rules {
		found = append(found, r.check(t, b)...)
	}
	return append(found, settingFaults(t, b, programs)...)
}

// What an expression asks for that there is not is noticed.
func TestExpressionFaults(t *testing.T) {
	known, why := metrics(t), reasons(t)
	for expr, says := range map[string]string{
		`numathrottle_tokens_grant_total`:                                     "numathrottle_tokens_grant_total is no metric",
		`sum by (tag) (numathrottle_waiting)`:                                 "tag is no label of these metrics",
		`numathrottle_waiting{reason="limit"}`:                                "reason is no label of this metric",
		`numathrottle_throttled_time_seconds_total{reason="limits"}`:          "limits is no reason",
		`rate(numathrottle_waiting)`:                                          "expected type range vector",
		`histogram_quantile(1, rate(numathrottle_wait_duration_seconds[1m]))`: "numathrottle_wait_duration_seconds is no metric",
	} {
		require.Contains(t, strings.Join(expressionFaults(expr, known, why), "\n"), says, expr)
	}
}
