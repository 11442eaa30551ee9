package check

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The annotations by which the usual configurations of Prometheus find what to scrape. They name one port: of each pod, or of
// each pod behind a Service.
const (
	scrapeAnnotation = "prometheus.io/scrape"
	portAnnotation   = "prometheus.io/port"
)

// scrapeFaults: the metrics of every container with a port are scraped, and once only.
func scrapeFaults(t *testing.T, b bundle) []string {
	t.Helper()
	var found []string
	for _, d := range b.of("Service") {
		var service corev1.ServiceSpec
		d.decode(t, &service, "spec")
		if port, ok := d.node.GetAnnotations()[portAnnotation]; ok && !slices.ContainsFunc(service.Ports, func(has corev1.ServicePort) bool {
			return fmt.Sprint(has.Port) == port
		}) {
			found = append(found, fmt.Sprintf("%s: %s is %s, which is no port of it", d, portAnnotation, port))
		}
	}
	for _, p := range b.pods(t) {
		if port, ok := p.annotations[portAnnotation]; ok && !hasPort(p, intstr.Parse(port)) {
			found = append(found, fmt.Sprintf("%s: %s is %s, which is no port", p, portAnnotation, port))
		}
		for i := range p.containers {
			c := &p.containers[i]
			for _, port := range c.Ports {
				if n := scrapes(t, b, p, port.ContainerPort); c.program() != "" && !isConsole(c) && n != 1 {
					found = append(found, fmt.Sprintf("%s, container %s: port %d is scraped %d times", p, c.Name, port.ContainerPort, n))
				}
			}
		}
	}
	return found
}

// scrapes counts the annotations by which a port of a pod is found.
func scrapes(t *testing.T, b bundle, p *pod, port int32) int {
	t.Helper()
	asks := func(annotations map[string]string) int {
		if annotations[scrapeAnnotation] == "true" && annotations[portAnnotation] == fmt.Sprint(port) {
			return 1
		}
		return 0
	}
	n := asks(p.annotations)
	for _, d := range b.of("Service") {
		var service corev1.ServiceSpec
		if d.decode(t, &service, "spec"); selects(t, selectorOf(&service), p.labels) {
			n += asks(d.node.GetAnnotations())
		}
	}
	return n
}

func selectorOf(service *corev1.ServiceSpec) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: service.Selector}
}
