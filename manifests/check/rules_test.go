package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// A report collects the faults of a bundle.
type report struct{ faults []string }

func (r *report) addf(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// check validates a bundle by its schemas, and then by every rule.
func (b bundle) check(t *testing.T) []string {
	t.Helper()
	r := &report{}
	if r.schemas(b); len(r.faults) > 0 {
		return r.faults // the rules read the documents as the types that they should be
	}
	for _, rule := range []func(bundle){r.images, r.security, r.resources, r.scale, r.scalers, r.ports, r.scrapes, r.buffers, r.network} {
		rule(b)
	}
	r.settings(t, b)
	return r.faults
}

func TestBundles(t *testing.T) {
	for _, b := range bundles() {
		t.Run(b.name, func(t *testing.T) { require.Empty(t, b.check(t)) })
	}
}

// each calls f for every container of a bundle.
func (b bundle) each(f func(p *pod, c *corev1.Container, where string)) {
	for _, p := range b.pods() {
		for _, c := range p.containers() {
			f(p, &c, fmt.Sprintf("%s, container %s", p, c.Name))
		}
	}
}

// images: an image is released by this project or well known, and has a tag that does not move.
func (r *report) images(b bundle) {
	dockerfile, release := file("Dockerfile"), file(".github/workflows/release.yml")
	b.each(func(_ *pod, c *corev1.Container, where string) {
		name, tag, _ := strings.Cut(c.Image, ":")
		if tag == "" || tag == "latest" {
			r.addf("%s: image %s has no fixed tag", where, c.Image)
		}
		program := program(c)
		switch {
		case program == "":
			// The last one stands for the user's own.
			if !slices.Contains([]string{"nats", "nginxinc/nginx-unprivileged", "registry.example.com/enrich"}, name) {
				r.addf("%s: image %s is neither built here nor known", where, name)
			}
		case !strings.Contains(dockerfile, " AS "+program+"\n"):
			r.addf("%s: the Dockerfile has no target %s", where, program)
		case !strings.Contains(release, "{program: "+program+", image: "+name[strings.LastIndex(name, "/")+1:]+"}"):
			r.addf("%s: no release pushes image %s", where, name)
		}
	})
}

var (
	evaluator  = must(policy.NewEvaluator(policy.DefaultChecks(), nil))
	restricted = api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
)

// security: a pod meets the restricted Pod Security Standard, and its containers cannot write to their root.
func (r *report) security(b bundle) {
	for _, p := range b.pods() {
		if len(p.containers()) == 0 {
			continue // it has none but Numaflow's
		}
		spec := p.Spec.DeepCopy()
		if spec.SecurityContext == nil || spec.SecurityContext.SeccompProfile == nil {
			r.addf("%s: the pod has no seccompProfile", p)
		} else if p.raw != nil {
			// The rest of it also applies to Numaflow's own containers, which run as root by default.
			spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: spec.SecurityContext.SeccompProfile}
		}
		for _, check := range evaluator.EvaluatePod(restricted, &p.ObjectMeta, spec) {
			if !check.Allowed {
				r.addf("%s: %s: %s", p, check.ForbiddenReason, check.ForbiddenDetail)
			}
		}
		if token := spec.AutomountServiceAccountToken; token == nil || *token {
			r.addf("%s: the pod has a token of the API server", p)
		}
		for _, c := range p.containers() {
			if of := c.SecurityContext; of == nil || of.ReadOnlyRootFilesystem == nil || !*of.ReadOnlyRootFilesystem {
				r.addf("%s, container %s: readOnlyRootFilesystem is not true", p, c.Name)
			} else if of.RunAsUser == nil && spec.SecurityContext.RunAsUser == nil {
				r.addf("%s, container %s: no runAsUser: the kubelet refuses an image whose user has a name", p, c.Name)
			}
		}
	}
}

// resources: requests, a limit of memory, and none of the processor, which would make tokens late.
func (r *report) resources(b bundle) {
	b.each(func(_ *pod, c *corev1.Container, where string) {
		has := c.Resources
		if has.Requests.Cpu().IsZero() || has.Requests.Memory().IsZero() || has.Limits.Memory().IsZero() || !has.Limits.Cpu().IsZero() {
			r.addf("%s: resources lack a request or the limit of memory, or limit the processor", where)
		}
	})
}

// ports: probes and Services use existing ports, and each port of a pod belongs to one container.
func (r *report) ports(b bundle) {
	b.each(func(p *pod, c *corev1.Container, where string) {
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil && probe.HTTPGet != nil && !p.hasPort(probe.HTTPGet.Port) {
				r.addf("%s: a probe asks port %s, which does not exist", where, probe.HTTPGet.Port.String())
			}
			if probe != nil && probe.TCPSocket != nil && !p.hasPort(probe.TCPSocket.Port) {
				r.addf("%s: a probe asks port %s, which does not exist", where, probe.TCPSocket.Port.String())
			}
		}
	})
	for _, p := range b.pods() {
		taken := map[int32]bool{}
		for _, c := range p.containers() {
			for _, port := range c.Ports {
				if taken[port.ContainerPort] {
					r.addf("%s: two containers have port %d", p, port.ContainerPort)
				}
				taken[port.ContainerPort] = true
			}
		}
	}
	b.services(func(d *document, spec corev1.ServiceSpec, behind []*pod) {
		if len(behind) == 0 {
			r.addf("%s: no pod is behind it", d)
		}
		for _, p := range behind {
			for _, port := range spec.Ports {
				if !p.hasPort(port.TargetPort) {
					r.addf("%s: %s has no port %s", d, p, port.TargetPort.String())
				}
			}
		}
	})
}

// scrapes: the annotations of pods and Services, by which usual configurations of Prometheus find one port, name each port once.
func (r *report) scrapes(b bundle) {
	b.each(func(p *pod, c *corev1.Container, where string) {
		if program(c) == "" || isConsole(c) {
			return
		}
		for _, port := range c.Ports {
			asked := []map[string]string{p.Annotations}
			b.services(func(d *document, _ corev1.ServiceSpec, behind []*pod) {
				if slices.ContainsFunc(behind, func(other *pod) bool { return other.String() == p.String() }) {
					asked = append(asked, d.node.GetAnnotations())
				}
			})
			asked = slices.DeleteFunc(asked, func(a map[string]string) bool {
				return a["prometheus.io/scrape"] != "true" || a["prometheus.io/port"] != fmt.Sprint(port.ContainerPort)
			})
			if len(asked) != 1 {
				r.addf("%s: port %d is scraped %d times", where, port.ContainerPort, len(asked))
			}
		}
	})
}

// buffers: a buffer service has a fixed version, and a bundle of its own. Deleting it deletes all buffers of the namespace.
func (r *report) buffers(b bundle) {
	for _, d := range b.of("InterStepBufferService") {
		version := ""
		d.decode(&version, "spec", "jetstream", "version")
		if !regexp.MustCompile(`^\d+\.`).MatchString(version) || b.name != "buffer" && b.name != "chart-buffer" {
			r.addf("%s: deleting the bundle deletes the buffers of other pipelines; or its version %q is not fixed", d, version)
		}
	}
}
