package check

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// numaPort is where Numaflow's own container serves metrics and probes.
const numaPort = 2469

// Addresses that stand for all others of their kind.
var (
	public  = []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8::7")}
	private = []netip.Addr{
		netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("100.64.0.1"), netip.MustParseAddr("169.254.169.254"),
		netip.MustParseAddr("172.16.0.1"), netip.MustParseAddr("192.168.0.1"), netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fe80::1"),
	}
)

// A need is traffic without which a pod does not do its work. The peer is an address, a namespace, or else pods beside it.
type need struct {
	direction networkingv1.PolicyType
	address   netip.Addr
	namespace string
	labels    map[string]string
	protocol  corev1.Protocol
	port      int32
}

func (n need) String() string {
	peer := n.namespace
	switch {
	case n.address.IsValid():
		peer = n.address.String()
	case n.namespace == "":
		peer = fmt.Sprint(n.labels)
	}
	return fmt.Sprintf("%s with %s at port %d/%s", n.direction, peer, n.port, n.protocol)
}

// needs are all that follow from what the pod is and from its settings.
func needs(t *testing.T, b bundle, p *pod) []need {
	t.Helper()
	all := served(t, b, p)
	if !p.numaflow && !isConsole(&p.containers[0]) {
		return all
	}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		all = append(all, need{direction: networkingv1.PolicyTypeEgress, namespace: "kube-system", protocol: protocol, port: 53})
	}
	if !p.numaflow {
		for _, target := range called(t, b, p) {
			all = append(all, calls(t, b, target)...)
		}
		return all
	}
	daemon, monitored := map[string]string{"app.kubernetes.io/part-of": "numaflow"}, []int32{numaPort}
	if p.vertex != "" {
		daemon["app.kubernetes.io/component"], daemon["numaflow.numaproj.io/pipeline-name"] = "daemon", p.owner.name
		all = append(all, calls(t, b, "nats://isbsvc-"+b.buffer(t, p.owner)+"-js-svc:4222")...)
	} else {
		daemon["app.kubernetes.io/component"], daemon["numaflow.numaproj.io/mono-vertex-name"] = "mono-vertex-daemon", p.owner.name
	}
	for i := range p.containers {
		for _, port := range p.containers[i].Ports {
			monitored = append(monitored, port.ContainerPort)
		}
	}
	all = append(all, need{direction: networkingv1.PolicyTypeIngress, labels: daemon, protocol: corev1.ProtocolTCP, port: numaPort})
	for _, port := range monitored {
		all = append(all, need{direction: networkingv1.PolicyTypeIngress, namespace: "monitoring", protocol: corev1.ProtocolTCP, port: port})
	}
	for _, target := range called(t, b, p) {
		all = append(all, calls(t, b, target)...)
	}
	return all
}

// isConsole tells whether a container is the console, which nobody reaches but by a port-forward.
func isConsole(c *container) bool {
	return c.program() == "numathrottle" && len(c.Args) > 0 && c.Args[0] == "console"
}

// served are the needs of a pod that others of the bundle call.
func served(t *testing.T, b bundle, p *pod) []need {
	t.Helper()
	var all []need
	for _, d := range b.of("Service") {
		var service corev1.ServiceSpec
		d.decode(t, &service, "spec")
		if !selects(t, selectorOf(&service), p.labels) {
			continue
		}
		for _, caller := range b.pods(t) {
			for _, target := range called(t, b, caller) {
				if u, err := url.Parse(target); err == nil && u.Hostname() == d.name {
					all = append(all, need{
						direction: networkingv1.PolicyTypeIngress, labels: caller.labels, protocol: corev1.ProtocolTCP, port: portOf(t, u),
					})
				}
			}
		}
	}
	return all
}

// called are the URLs that a pod calls: the stores and the services of its programs, and the brokers of its source.
func called(t *testing.T, b bundle, p *pod) []string {
	t.Helper()
	var all []string
	for i := range p.containers {
		c := &p.containers[i]
		if c.program() == "llm-map" {
			all = append(all, "https://api.openai.com") // as long as there is no other
		}
		env, _ := rootFolder{move: strings.NewReplacer()}.environment(t, b, p, c)
		settings := strings.Join(env, "\n")
		for _, v := range p.volumes {
			if v.ConfigMap != nil && mounts(c, v.Name) {
				settings += "\n" + b.configMaps(t)[v.ConfigMap.Name]["config.yaml"]
			}
		}
		const keys = "NUMATHROTTLE_STORE=|NUMATHROTTLE_PROXY_UPSTREAM=|HTTP_SINK_URL=|url: |store: "
		for _, m := range regexp.MustCompile(`(?m)^(?:`+keys+`)(\S+)`).FindAllStringSubmatch(settings, -1) {
			all = append(all, m[1])
			if strings.HasPrefix(m[1], "redis+sentinel:") {
				all = append(all, "redis://redis:6379") // the master that they name
			}
		}
	}
	if p.spec != nil {
		brokers, err := p.spec.Pipe(yaml.Lookup("source", "kafka", "brokers"))
		require.NoError(t, err)
		if brokers != nil {
			names, err := brokers.Elements()
			require.NoError(t, err)
			for _, name := range names {
				all = append(all, "kafka://"+name.YNode().Value)
			}
		}
	}
	return all
}

func mounts(c *container, volume string) bool {
	for _, m := range c.VolumeMounts {
		if m.Name == volume {
			return true
		}
	}
	return false
}

// calls are the needs of who calls a URL: of a Service's pods, else of pods that are not in the bundle, else of public addresses.
func calls(t *testing.T, b bundle, target string) []need {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	n := need{direction: networkingv1.PolicyTypeEgress, protocol: corev1.ProtocolTCP, port: portOf(t, u)}
	host := u.Hostname()
	if strings.Contains(host, ".") {
		var all []need
		for _, n.address = range public {
			all = append(all, n)
		}
		return all
	}
	// The names of Services that others bring, as the overlays say which labels they count on.
	n.labels = map[string]string{"app.kubernetes.io/name": strings.TrimSuffix(host, "-sentinel")}
	if buffer := regexp.MustCompile(`^isbsvc-(.*)-js-svc$`).FindStringSubmatch(host); buffer != nil {
		n.labels = map[string]string{"app.kubernetes.io/component": "isbsvc", "numaflow.numaproj.io/isbsvc-name": buffer[1]}
	}
	for _, d := range b.of("Service") {
		var service corev1.ServiceSpec
		d.decode(t, &service, "spec")
		if behind := matching(t, b, selectorOf(&service)); d.name == host && len(behind) > 0 {
			n.labels = behind[0].labels
		}
	}
	return []need{n}
}

// portOf is the port of a URL. The Services of the bundles have the ports of their pods.
func portOf(t *testing.T, u *url.URL) int32 {
	t.Helper()
	if u.Scheme == "https" && u.Port() == "" {
		return 443
	}
	port, err := strconv.ParseInt(u.Port(), 10, 32)
	require.NoError(t, err, u.String())
	return int32(port)
}
