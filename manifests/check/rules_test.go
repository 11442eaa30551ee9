package check

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// A rule says what is wrong with a bundle beyond its schema.
type rule struct {
	name  string
	check func(t *testing.T, b bundle) []string
}

var rules = []rule{
	{"images", imageFaults},
	{"security", securityFaults},
	{"resources", resourceFaults},
	{"scale", scaleFaults},
	{"names", nameFaults},
	{"ports", portFaults},
	{"network", networkFaults},
	{"scrape", scrapeFaults},
	{"labels", labelFaults},
	{"buffers", bufferFaults},
}

func TestRules(t *testing.T) {
	for _, b := range slices.Concat(overlays(t), examples(t)) {
		for _, r := range rules {
			t.Run(b.name+"/"+r.name, func(t *testing.T) { require.Empty(t, r.check(t, b)) })
		}
	}
}

// eachContainer calls f for every container of a bundle, and gathers what f says of it.
func eachContainer(t *testing.T, b bundle, f func(p *pod, c *container) []string) []string {
	t.Helper()
	var found []string
	for _, p := range b.pods(t) {
		for i := range p.containers {
			for _, fault := range f(p, &p.containers[i]) {
				found = append(found, fmt.Sprintf("%s, container %s: %s", p, p.containers[i].Name, fault))
			}
		}
	}
	return found
}

// foreign are the images that are not this project's. The last one stands for the user's own.
var foreign = []string{"nats", "nginxinc/nginx-unprivileged", "registry.example.com/enrich"}

// imageFaults: an image is one that is built here or a known one, and has a tag that does not move.
func imageFaults(t *testing.T, b bundle) []string {
	t.Helper()
	dockerfile, err := os.ReadFile(filepath.Join(project, "Dockerfile"))
	if err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	return eachContainer(t, b, func(_ *pod, c *container) []string {
		var found []string
		name, tag := splitImage(c.Image)
		if tag == "" || tag == "latest" {
			found = append(found, fmt.Sprintf("image %s has no fixed tag", c.Image))
		}
		program := c.program()
		if program == "" {
			if !slices.Contains(foreign, name) {
				found = append(found, fmt.Sprintf("image %s is neither built here nor known", name))
			}
			return found
		}
		if source(program) == "" {
			found = append(found, fmt.Sprintf("image %s is of no program of the project", name))
		}
		if dockerfile != nil && !regexp.MustCompile(`(?mi)^FROM .* AS `+regexp.QuoteMeta(program)+`\s*$`).Match(dockerfile) {
			found = append(found, fmt.Sprintf("the Dockerfile has no target %s", program))
		}
		return found
	})
}

// source is the folder of a program's main package; empty if there is none.
func source(program string) string {
	for _, folder := range []string{"examples", "cmd"} {
		if _, err := os.Stat(filepath.Join(project, folder, program, "main.go")); err == nil {
			return "./" + folder + "/" + program
		}
	}
	return ""
}

// securityFaults: what the restricted Pod Security Standard asks of a container, and a root that cannot be written to.
// Some of it may stand in the pod.
func securityFaults(t *testing.T, b bundle) []string {
	t.Helper()
	return eachContainer(t, b, func(p *pod, c *container) []string {
		of, in := c.SecurityContext, p.security
		if of == nil {
			of = &corev1.SecurityContext{}
		}
		if in == nil {
			in = &corev1.PodSecurityContext{}
		}
		if p.numaflow {
			// What stands in the pod is in force for Numaflow's own containers too, which run as root by default.
			in = &corev1.PodSecurityContext{SeccompProfile: in.SeccompProfile}
		}
		yes := func(b *bool) bool { return b != nil && *b }
		no := func(b *bool) bool { return b != nil && !*b }
		seccomp := func(s *corev1.SeccompProfile) bool {
			return s != nil && s.Type == corev1.SeccompProfileTypeRuntimeDefault
		}
		user := of.RunAsUser
		if user == nil {
			user = in.RunAsUser
		}
		var found []string
		drops := of.Capabilities != nil && slices.Contains(of.Capabilities.Drop, "ALL") && len(of.Capabilities.Add) == 0
		for fault, ok := range map[string]bool{
			"runAsNonRoot is not true":                  yes(of.RunAsNonRoot) || of.RunAsNonRoot == nil && yes(in.RunAsNonRoot),
			"runAsUser is not a number above 0":         user != nil && *user > 0,
			"allowPrivilegeEscalation is not false":     no(of.AllowPrivilegeEscalation),
			"readOnlyRootFilesystem is not true":        yes(of.ReadOnlyRootFilesystem),
			"capabilities are not dropped":              drops,
			"seccompProfile is not RuntimeDefault":      seccomp(of.SeccompProfile) || of.SeccompProfile == nil && seccomp(in.SeccompProfile),
			"the pod has no seccompProfile":             seccomp(in.SeccompProfile),
			"the pod has a token of the API server":     no(p.token),
			"privileged or with a host's process mount": !yes(of.Privileged) && of.ProcMount == nil,
		} {
			if !ok {
				found = append(found, fault)
			}
		}
		slices.Sort(found)
		return found
	})
}

// resourceFaults: requests for both, and a limit of memory. A limit of the processor would make tokens late.
func resourceFaults(t *testing.T, b bundle) []string {
	t.Helper()
	return eachContainer(t, b, func(_ *pod, c *container) []string {
		var found []string
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			found = append(found, "resources lack a request or the limit of memory")
		}
		if !c.Resources.Limits.Cpu().IsZero() {
			found = append(found, "the processor is limited")
		}
		return found
	})
}

// scaleFaults: a throttled vertex has a fixed scale, no limit of Numaflow's own, and room for waiting messages.
func scaleFaults(t *testing.T, b bundle) []string {
	t.Helper()
	var found []string
	for _, p := range b.pods(t) {
		if !p.numaflow || len(p.containers) == 0 {
			continue
		}
		number := func(path ...string) int {
			node, err := p.spec.Pipe(yaml.Lookup(path...))
			require.NoError(t, err)
			if node == nil {
				return 0
			}
			n, err := strconv.Atoi(node.YNode().Value)
			require.NoError(t, err)
			return n
		}
		if low, high := number("scale", "min"), number("scale", "max"); low == 0 || low != high {
			found = append(found, fmt.Sprintf("%s: the scale is %d to %d, not fixed", p, low, high))
		}
		batch := number("limits", "readBatchSize")
		if batch == 0 {
			found = append(found, fmt.Sprintf("%s: no readBatchSize", p))
		}
		if room := number("limits", "concurrency"); p.vertex != "" && p.containers[0].role == "udf" && room < 4*batch {
			found = append(found, fmt.Sprintf("%s: concurrency %d is below 4 x readBatchSize %d", p, room, batch))
		}
	}
	for _, d := range b.docs {
		if text := d.node.MustString(); strings.Contains(text, "rateLimit:") {
			found = append(found, d.String()+": a rateLimit of Numaflow's own")
		}
	}
	return found
}

// portFaults: what probes and Services name is a port of a container, and no two containers of a pod have one.
func portFaults(t *testing.T, b bundle) []string {
	t.Helper()
	found := eachContainer(t, b, probeFaults)
	for _, p := range b.pods(t) {
		taken := map[int32]bool{}
		for i := range p.containers {
			for _, port := range p.containers[i].Ports {
				if taken[port.ContainerPort] {
					found = append(found, fmt.Sprintf("%s: two containers have port %d", p, port.ContainerPort))
				}
				taken[port.ContainerPort] = true
			}
		}
	}
	for _, d := range b.of("Service") {
		var service corev1.ServiceSpec
		d.decode(t, &service, "spec")
		behind := matching(t, b, selectorOf(&service))
		if len(behind) == 0 {
			found = append(found, d.String()+": no pod is behind it")
		}
		for _, p := range behind {
			for _, port := range service.Ports {
				if !hasPort(p, port.TargetPort) {
					found = append(found, fmt.Sprintf("%s: %s has no port %s", d, p, port.TargetPort.String()))
				}
			}
		}
	}
	return found
}

// probeFaults: other containers than Numaflow's, which sets a probe of its own, have all three.
func probeFaults(p *pod, c *container) []string {
	var found []string
	for _, probe := range []struct {
		kind string
		is   *corev1.Probe
	}{{"liveness", c.LivenessProbe}, {"readiness", c.ReadinessProbe}, {"startup", c.StartupProbe}} {
		switch {
		case probe.is == nil && !p.numaflow:
			found = append(found, fmt.Sprintf("no %s probe", probe.kind))
		case probe.is != nil && probe.is.HTTPGet != nil && !hasPort(p, probe.is.HTTPGet.Port):
			found = append(found, fmt.Sprintf("the %s probe asks port %s, which is none", probe.kind, probe.is.HTTPGet.Port.String()))
		case probe.is != nil && probe.is.TCPSocket != nil && !hasPort(p, probe.is.TCPSocket.Port):
			found = append(found, fmt.Sprintf("the %s probe asks port %s, which is none", probe.kind, probe.is.TCPSocket.Port.String()))
		}
	}
	return found
}

func hasPort(p *pod, port intstr.IntOrString) bool {
	return slices.ContainsFunc(p.containers, func(c container) bool {
		return slices.ContainsFunc(c.Ports, func(has corev1.ContainerPort) bool {
			return port.Type == intstr.Int && has.ContainerPort == port.IntVal || port.Type == intstr.String && has.Name == port.StrVal
		})
	})
}

// matching returns the pods of a bundle that a selector finds.
func matching(t *testing.T, b bundle, selector *metav1.LabelSelector) []*pod {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	var found []*pod
	for _, p := range b.pods(t) {
		if s.Matches(labels.Set(p.labels)) {
			found = append(found, p)
		}
	}
	return found
}
