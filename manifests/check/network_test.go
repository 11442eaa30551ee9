package check

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

const (
	ingress, egress = networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress
	tcp             = corev1.ProtocolTCP
	numaPort        = 2469 // Numaflow's own container serves metrics and probes there
)

// Addresses that stand for all others of their kind.
var (
	public  = []string{"203.0.113.7", "2001:db8::7"}
	private = []string{"10.96.0.1", "100.64.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1", "fd00:ec2::254", "fe80::1"}
)

// A need is traffic without which a pod does not work. The peer is an address, a namespace, or pods in its namespace.
type need struct {
	direction          networkingv1.PolicyType
	address, namespace string
	labels             map[string]string
	protocol           corev1.Protocol
	port               int32
}

func (n need) String() string {
	return fmt.Sprintf("%s with %s%s%v at port %d/%s", n.direction, n.address, n.namespace, n.labels, n.port, n.protocol)
}

// An opening lets one kind of peer through at one port.
type opening struct {
	policy    *networkingv1.NetworkPolicySpec
	name      string
	direction networkingv1.PolicyType
	peer      networkingv1.NetworkPolicyPeer
	port      networkingv1.NetworkPolicyPort
	used      bool
}

// network: policies close every pod in both directions, and allow only its needs. Examples contain no policies.
func (r *report) network(b bundle) {
	if b.example {
		return
	}
	var policies []*networkingv1.NetworkPolicySpec
	var openings []*opening
	for _, d := range b.of("NetworkPolicy") {
		spec := &networkingv1.NetworkPolicySpec{}
		d.decode(spec, "spec")
		policies = append(policies, spec)
		if !slices.ContainsFunc(b.pods(), func(p *pod) bool { return selects(&spec.PodSelector, p.Labels) }) {
			r.addf("%s: it is for no pod", d)
		}
		add := func(direction networkingv1.PolicyType, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) {
			if len(peers) == 0 || len(ports) == 0 {
				r.addf("%s: an %s rule without peers or without ports is for all of them", d, direction)
			}
			for _, peer := range peers {
				for _, port := range ports {
					name := fmt.Sprintf("%s of %s, port %s/%s, %s", direction, d, port.Port, *port.Protocol, peer.String())
					openings = append(openings, &opening{spec, name, direction, peer, port, false})
				}
			}
		}
		for _, in := range spec.Ingress {
			add(ingress, in.From, in.Ports)
		}
		for _, out := range spec.Egress {
			add(egress, out.To, out.Ports)
		}
	}
	for _, p := range b.pods() {
		for _, direction := range []networkingv1.PolicyType{ingress, egress} {
			if !slices.ContainsFunc(policies, func(spec *networkingv1.NetworkPolicySpec) bool {
				return selects(&spec.PodSelector, p.Labels) && slices.Contains(spec.PolicyTypes, direction)
			}) {
				r.addf("%s: no policy closes its %s", p, direction)
			}
		}
		for _, n := range b.needs(p) {
			allowed := false
			for _, o := range openings {
				if selects(&o.policy.PodSelector, p.Labels) && slices.Contains(o.policy.PolicyTypes, n.direction) && o.allows(n) {
					allowed, o.used = true, true
				}
			}
			if !allowed {
				r.addf("%s: no policy allows it %s", p, n)
			}
		}
	}
	for _, o := range openings {
		if !o.used {
			r.addf("nobody needs %s", o.name)
		}
	}
}

// allows reports whether the opening lets a need through.
func (o *opening) allows(n need) bool {
	switch block := o.peer.IPBlock; {
	case o.direction != n.direction || o.port.Port.IntVal != n.port || *o.port.Protocol != n.protocol:
		return false
	case n.address != "" || block != nil:
		// A block with a private address, or that of a cloud's metadata, is itself a fault: nothing needs it.
		return n.address != "" && block != nil && within(block, n.address) && !slices.ContainsFunc(private, func(a string) bool { return within(block, a) })
	case n.namespace != "":
		has := map[string]string{corev1.LabelMetadataName: n.namespace}
		return o.peer.NamespaceSelector != nil && o.peer.PodSelector == nil && selects(o.peer.NamespaceSelector, has)
	default:
		return o.peer.NamespaceSelector == nil && selects(o.peer.PodSelector, n.labels)
	}
}

func within(block *networkingv1.IPBlock, address string) bool {
	in := func(cidr string) bool { return must(netip.ParsePrefix(cidr)).Contains(netip.MustParseAddr(address)) }
	return in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
}

// needs returns all traffic that follows from the kind of a pod and from its settings.
func (b bundle) needs(p *pod) (all []need) {
	b.services(func(d *document, _ corev1.ServiceSpec, behind []*pod) {
		if !slices.ContainsFunc(behind, func(other *pod) bool { return other.String() == p.String() }) {
			return
		}
		for _, caller := range b.pods() {
			for _, target := range b.called(caller) {
				if u, err := url.Parse(target); err == nil && u.Hostname() == d.name {
					all = append(all, need{direction: ingress, labels: caller.Labels, protocol: tcp, port: portOf(u)})
				}
			}
		}
	})
	if p.raw == nil && !isConsole(&p.containers()[0]) {
		return all
	}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, tcp} {
		all = append(all, need{direction: egress, namespace: "kube-system", protocol: protocol, port: 53})
	}
	for _, target := range b.called(p) {
		all = append(all, b.calls(target)...)
	}
	if p.raw == nil {
		return all
	}
	daemon := map[string]string{"app.kubernetes.io/part-of": "numaflow", "app.kubernetes.io/component": "daemon"}
	if p.vertex != "" {
		daemon["numaflow.numaproj.io/pipeline-name"] = p.owner.name
	} else {
		daemon["app.kubernetes.io/component"], daemon["numaflow.numaproj.io/mono-vertex-name"] = "mono-vertex-daemon", p.owner.name
	}
	monitored := []int32{numaPort}
	for _, c := range p.containers() {
		for _, port := range c.Ports {
			monitored = append(monitored, port.ContainerPort)
		}
	}
	for _, port := range monitored {
		all = append(all, need{direction: ingress, namespace: "monitoring", protocol: tcp, port: port})
	}
	return append(all, need{direction: ingress, labels: daemon, protocol: tcp, port: numaPort})
}

// calls returns the needs of the caller of a URL: of pods behind a Service, of pods that are not in the bundle, or of public addresses.
func (b bundle) calls(target string) []need {
	u := must(url.Parse(target))
	host, n := u.Hostname(), need{direction: egress, protocol: tcp, port: portOf(u)}
	if strings.Contains(host, ".") {
		v4, v6 := n, n
		v4.address, v6.address = public[0], public[1]
		return []need{v4, v6}
	}
	// Services outside the bundle, with the labels that the overlays document.
	n.labels = map[string]string{"app.kubernetes.io/name": strings.TrimSuffix(host, "-sentinel")}
	if buffer := regexp.MustCompile(`^isbsvc-(.*)-js-svc$`).FindStringSubmatch(host); buffer != nil {
		n.labels = map[string]string{"app.kubernetes.io/component": "isbsvc", "numaflow.numaproj.io/isbsvc-name": buffer[1]}
	}
	b.services(func(d *document, _ corev1.ServiceSpec, behind []*pod) {
		if d.name == host && len(behind) > 0 {
			n.labels = behind[0].Labels
		}
	})
	return []need{n}
}

// portOf returns the port of a URL. The Services of the bundles have the ports of their pods.
func portOf(u *url.URL) int32 {
	if u.Scheme == "https" && u.Port() == "" {
		return 443
	}
	return int32(must(strconv.ParseInt(u.Port(), 10, 32)))
}
