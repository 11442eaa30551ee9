package check

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// numaPort is where Numaflow's own container serves metrics and probes.
const numaPort = 2469

// networkFaults: a policy is for pods that there are, opens no port that nobody has, and leaves no port of ours closed.
func networkFaults(t *testing.T, b bundle) []string {
	t.Helper()
	var found []string
	policies := b.of("NetworkPolicy")
	for _, d := range policies {
		var spec networkingv1.NetworkPolicySpec
		d.decode(t, &spec, "spec")
		for _, e := range spec.PodSelector.MatchExpressions {
			for _, value := range e.Values {
				if len(matching(t, b, &metav1.LabelSelector{MatchLabels: map[string]string{e.Key: value}})) == 0 {
					found = append(found, fmt.Sprintf("%s: no pod has %s %s", d, e.Key, value))
				}
			}
		}
		pods := matching(t, b, &spec.PodSelector)
		if len(pods) == 0 {
			found = append(found, d.String()+": it is for no pod")
		}
		for _, in := range spec.Ingress {
			for _, port := range in.Ports {
				if port.Port.IntVal != numaPort && !slices.ContainsFunc(pods, func(p *pod) bool { return hasPort(p, *port.Port) }) {
					found = append(found, fmt.Sprintf("%s: it opens port %s, which no pod has", d, port.Port.String()))
				}
			}
		}
	}
	for _, p := range b.pods(t) {
		for i := range p.containers {
			for _, port := range p.containers[i].Ports {
				if p.numaflow && !opened(t, policies, p, port.ContainerPort) {
					found = append(found, fmt.Sprintf("%s: no policy opens port %d", p, port.ContainerPort))
				}
			}
		}
	}
	return found
}

// opened tells whether a pod can be reached at a port: by a policy that says so, or because none closes it.
func opened(t *testing.T, policies []*document, p *pod, port int32) bool {
	t.Helper()
	closed := false
	for _, d := range policies {
		var spec networkingv1.NetworkPolicySpec
		d.decode(t, &spec, "spec")
		s, err := metav1.LabelSelectorAsSelector(&spec.PodSelector)
		require.NoError(t, err)
		if !s.Matches(labels.Set(p.labels)) || !slices.Contains(spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			continue
		}
		closed = true
		for _, in := range spec.Ingress {
			if slices.ContainsFunc(in.Ports, func(open networkingv1.NetworkPolicyPort) bool { return open.Port.IntVal == port }) {
				return true
			}
		}
	}
	return !closed
}
