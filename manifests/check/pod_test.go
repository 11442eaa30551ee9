package check

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// A pod is the pods of one vertex, of a MonoVertex or of a workload of Kubernetes, without Numaflow's own containers.
type pod struct {
	corev1.PodTemplateSpec

	owner  *document
	vertex string       // of a pipeline
	raw    *kyaml.RNode // the spec of the vertex or MonoVertex; nil for others
}

func (p *pod) String() string {
	if p.vertex != "" {
		return p.owner.String() + ", vertex " + p.vertex
	}
	return p.owner.String()
}

// roles maps NUMAFLOW_UD_CONTAINER_TYPE to the container's place in a vertex. Numaflow names the containers the same.
var roles = map[string]string{
	"udsource": "source.udsource", "transformer": "source.transformer", "udf": "udf", "udsink": "sink.udsink",
	"fb-udsink": "sink.fallback.udsink", "ons-udsink": "sink.onSuccess.udsink",
}

// pods returns all pods of a bundle.
func (b bundle) pods() (all []*pod) {
	for _, d := range b.docs {
		switch d.kind {
		case "Pipeline":
			for _, v := range must(must(d.node.Pipe(kyaml.Lookup("spec", "vertices"))).Elements()) {
				all = append(all, vertexPod(d, must(v.GetString("name")), v))
			}
		case "MonoVertex":
			all = append(all, vertexPod(d, "", must(d.node.Pipe(kyaml.Lookup("spec")))))
		case "StatefulSet", "Deployment", "DaemonSet", "Job":
			p := &pod{owner: d}
			d.decode(&p.PodTemplateSpec, "spec", "template")
			var claims []corev1.PersistentVolumeClaim
			d.decode(&claims, "spec", "volumeClaimTemplates")
			for i := range claims {
				source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claims[i].Name, VolumeSource: source})
			}
			all = append(all, p)
		}
	}
	return all
}

// vertexPod reads a vertex, or the spec of a MonoVertex, and labels the pod as Numaflow's controllers do.
func vertexPod(d *document, name string, v *kyaml.RNode) *pod {
	p := &pod{owner: d, vertex: name, raw: v}
	decode(v, &p.Spec.SecurityContext, "securityContext")
	decode(v, &p.Spec.AutomountServiceAccountToken, "automountServiceAccountToken")
	decode(v, &p.Spec.Volumes, "volumes")
	decode(v, &p.Annotations, "metadata", "annotations")
	decode(v, &p.Spec.InitContainers, "initContainers")
	decode(v, &p.Spec.Containers, "sidecars")
	for role, path := range roles {
		c := corev1.Container{}
		if decode(v, &c, append(strings.Split(path, "."), "container")...) {
			c.Name = role
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	p.Labels = map[string]string{"app.kubernetes.io/part-of": "numaflow"}
	if name != "" {
		p.Labels["app.kubernetes.io/component"] = "vertex"
		p.Labels["numaflow.numaproj.io/pipeline-name"] = d.name
		p.Labels["numaflow.numaproj.io/vertex-name"] = name
	} else {
		p.Labels["app.kubernetes.io/component"] = "mono-vertex"
		p.Labels["numaflow.numaproj.io/mono-vertex-name"] = d.name
	}
	return p
}

// containers returns all containers of the pod.
func (p *pod) containers() []corev1.Container {
	return slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
}

func (p *pod) hasPort(port intstr.IntOrString) bool {
	return slices.ContainsFunc(p.containers(), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(has corev1.ContainerPort) bool {
			return port.Type == intstr.Int && has.ContainerPort == port.IntVal || port.Type == intstr.String && has.Name == port.StrVal
		})
	})
}

// selects reports whether a selector matches labels.
func selects(selector *metav1.LabelSelector, has map[string]string) bool {
	return must(metav1.LabelSelectorAsSelector(selector)).Matches(labels.Set(has))
}

// services calls f for each Service with the pods behind it.
func (b bundle) services(f func(d *document, spec corev1.ServiceSpec, behind []*pod)) {
	for _, d := range b.of("Service") {
		var spec corev1.ServiceSpec
		d.decode(&spec, "spec")
		f(d, spec, slices.DeleteFunc(b.pods(), func(p *pod) bool { return !selects(&metav1.LabelSelector{MatchLabels: spec.Selector}, p.Labels) }))
	}
}

// repository begins the names of the project's images.
const repository = "quay.io/numaproj-contrib/numathrottle"

// program returns the binary in an image of this project; empty for others.
func program(c *corev1.Container) string {
	name, _, _ := strings.Cut(c.Image, ":")
	if name == repository {
		return "numathrottle"
	}
	binary, ours := strings.CutPrefix(name, repository+"-")
	if !ours {
		return ""
	}
	return binary
}

// isConsole reports whether a container is the console, which is reached only by a port-forward.
func isConsole(c *corev1.Container) bool {
	return program(c) == "numathrottle" && len(c.Args) > 0 && c.Args[0] == "console"
}
