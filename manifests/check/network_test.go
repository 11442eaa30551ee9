package check

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// networkFaults: every pod is closed in both directions, may do what it needs (needs), and no policy allows more than that.
// The pipelines beside the programs bring no policies.
func networkFaults(t *testing.T, b bundle) []string {
	t.Helper()
	policies, found := readPolicies(t, b)
	if b.example {
		return found
	}
	used := map[string]bool{}
	for _, p := range b.pods(t) {
		for _, direction := range []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress} {
			if !slices.ContainsFunc(policies, func(pol *policyOf) bool { return pol.closes(p, direction) }) {
				found = append(found, fmt.Sprintf("%s: no policy closes its %s", p, direction))
			}
		}
		for _, n := range needs(t, b, p) {
			allowed := false
			for _, pol := range policies {
				for _, opening := range pol.openings {
					if pol.closes(p, n.direction) && opening.allows(t, n) {
						allowed, used[opening.name] = true, true
					}
				}
			}
			if !allowed {
				found = append(found, fmt.Sprintf("%s: no policy allows it %s", p, n))
			}
		}
	}
	for _, pol := range policies {
		for _, opening := range pol.openings {
			if !used[opening.name] {
				found = append(found, "nobody needs "+opening.name)
			}
		}
	}
	return found
}

// A policyOf is a policy with each pair of a peer and a port that it opens.
type policyOf struct {
	spec     networkingv1.NetworkPolicySpec
	pods     labels.Selector
	openings []opening
}

// An opening lets one kind of peer through at one port.
type opening struct {
	name      string
	direction networkingv1.PolicyType
	peer      networkingv1.NetworkPolicyPeer
	port      networkingv1.NetworkPolicyPort
}

// closes tells whether the policy is in force for a pod in a direction.
func (p *policyOf) closes(at *pod, direction networkingv1.PolicyType) bool {
	return p.pods.Matches(labels.Set(at.labels)) && slices.Contains(p.spec.PolicyTypes, direction)
}

// readPolicies takes the policies apart, and says which are for nobody or open to everybody.
func readPolicies(t *testing.T, b bundle) (policies []*policyOf, found []string) {
	t.Helper()
	for _, d := range b.of("NetworkPolicy") {
		pol := &policyOf{}
		d.decode(t, &pol.spec, "spec")
		found = append(found, selectorFaults(t, b, d, &pol.spec.PodSelector)...)
		var err error
		pol.pods, err = metav1.LabelSelectorAsSelector(&pol.spec.PodSelector)
		require.NoError(t, err)
		add := func(direction networkingv1.PolicyType, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) {
			if len(peers) == 0 || len(ports) == 0 {
				found = append(found, fmt.Sprintf("%s: an %s rule without peers or without ports is for all of them", d, direction))
			}
			for i, peer := range peers {
				for _, port := range ports {
					name := fmt.Sprintf("%s of %s, port %s/%s, peer %d: %s", direction, d, port.Port, *port.Protocol, i, peer.String())
					pol.openings = append(pol.openings, opening{name, direction, peer, port})
				}
			}
		}
		for _, in := range pol.spec.Ingress {
			add(networkingv1.PolicyTypeIngress, in.From, in.Ports)
		}
		for _, out := range pol.spec.Egress {
			add(networkingv1.PolicyTypeEgress, out.To, out.Ports)
		}
		policies = append(policies, pol)
	}
	return policies, found
}

// selectorFaults: a policy is for pods that there are.
func selectorFaults(t *testing.T, b bundle, d *document, selector *metav1.LabelSelector) []string {
	t.Helper()
	var found []string
	for _, e := range selector.MatchExpressions {
		for _, value := range e.Values {
			if len(matching(t, b, &metav1.LabelSelector{MatchLabels: map[string]string{e.Key: value}})) == 0 {
				found = append(found, fmt.Sprintf("%s: no pod has %s %s", d, e.Key, value))
			}
		}
	}
	if len(matching(t, b, selector)) == 0 {
		found = append(found, d.String()+": it is for no pod")
	}
	return found
}

// allows tells whether the opening lets a need through.
func (o *opening) allows(t *testing.T, n need) bool {
	t.Helper()
	if o.direction != n.direction || o.port.Port.IntVal != n.port || *o.port.Protocol != n.protocol {
		return false
	}
	switch block := o.peer.IPBlock; {
	case n.address.IsValid():
		return block != nil && within(t, block, n.address)
	case block != nil:
		return false
	case n.namespace == "":
		return o.peer.NamespaceSelector == nil && selects(t, o.peer.PodSelector, n.labels)
	default:
		name := map[string]string{corev1.LabelMetadataName: n.namespace}
		return o.peer.NamespaceSelector != nil && o.peer.PodSelector == nil && selects(t, o.peer.NamespaceSelector, name)
	}
}

func selects(t *testing.T, selector *metav1.LabelSelector, has map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	return s.Matches(labels.Set(has))
}

// within tells whether a public address is in a block; a block that has a private one, or that of a cloud's metadata, is a
// fault by itself: nothing needs it, and so it counts for nothing.
func within(t *testing.T, block *networkingv1.IPBlock, address netip.Addr) bool {
	t.Helper()
	has := func(address netip.Addr) bool {
		in := func(cidr string) bool {
			prefix, err := netip.ParsePrefix(cidr)
			require.NoError(t, err)
			return prefix.Contains(address)
		}
		return in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
	}
	return has(address) && !slices.ContainsFunc(private, has)
}
