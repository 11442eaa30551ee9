package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// A pod is the pods of one vertex, of a MonoVertex or of a workload of Kubernetes' own, as far as the manifests say.
type pod struct {
	owner       *document
	vertex      string // of a pipeline
	numaflow    bool
	security    *corev1.PodSecurityContext
	token       *bool // automountServiceAccountToken
	volumes     []corev1.Volume
	containers  []container
	spec        *yaml.RNode // of the vertex; nil for others
	labels      map[string]string
	annotations map[string]string
}

// A container is one that the manifests describe. Numaflow's own containers are not among them.
type container struct {
	corev1.Container

	role string // NUMAFLOW_UD_CONTAINER_TYPE; empty outside Numaflow
}

func (p *pod) String() string {
	if p.vertex != "" {
		return p.owner.String() + ", vertex " + p.vertex
	}
	return p.owner.String()
}

// The places of user containers in a vertex, with what Numaflow calls them.
var places = []struct {
	path, role string
}{
	{"source.udsource.container", "udsource"},
	{"source.transformer.container", "transformer"},
	{"udf.container", "udf"},
	{"sink.udsink.container", "udsink"},
	{"sink.fallback.udsink.container", "fb-udsink"},
	{"sink.onSuccess.udsink.container", "ons-udsink"},
}

// pods finds all of a bundle.
func (b bundle) pods(t *testing.T) []*pod {
	t.Helper()
	var all []*pod
	for _, d := range b.docs {
		switch d.kind {
		case "Pipeline":
			vertices, err := d.node.Pipe(yaml.Lookup("spec", "vertices"))
			require.NoError(t, err)
			elements, err := vertices.Elements()
			require.NoError(t, err)
			for _, v := range elements {
				name, err := v.GetString("name")
				require.NoError(t, err)
				all = append(all, vertexPod(t, d, name, v))
			}
		case "MonoVertex":
			spec, err := d.node.Pipe(yaml.Lookup("spec"))
			require.NoError(t, err)
			all = append(all, vertexPod(t, d, "", spec))
		case "StatefulSet", "Deployment", "DaemonSet", "Job":
			all = append(all, templatePod(t, d))
		}
	}
	return all
}

// vertexPod reads a vertex, or the spec of a MonoVertex.
func vertexPod(t *testing.T, d *document, name string, v *yaml.RNode) *pod {
	t.Helper()
	p := &pod{owner: d, vertex: name, numaflow: true, spec: v, annotations: map[string]string{}}
	part := func(into any, path ...string) {
		node, err := v.Pipe(yaml.Lookup(path...))
		require.NoError(t, err)
		if node != nil {
			decode(t, node, into)
		}
	}
	part(&p.security, "securityContext")
	part(&p.token, "automountServiceAccountToken")
	part(&p.volumes, "volumes")
	part(&p.annotations, "metadata", "annotations")
	for _, place := range places {
		node, err := v.Pipe(yaml.Lookup(strings.Split(place.path, ".")...))
		require.NoError(t, err)
		if node == nil {
			continue
		}
		c := container{role: place.role}
		decode(t, node, &c.Container)
		c.Name = place.role
		p.containers = append(p.containers, c)
	}
	for _, beside := range []string{"initContainers", "sidecars"} {
		var more []corev1.Container
		part(&more, beside)
		for i := range more {
			p.containers = append(p.containers, container{Container: more[i]})
		}
	}
	// As Numaflow's controllers label them.
	p.labels = map[string]string{"app.kubernetes.io/part-of": "numaflow"}
	if name != "" {
		p.labels["app.kubernetes.io/component"] = "vertex"
		p.labels["numaflow.numaproj.io/pipeline-name"] = d.name
		p.labels["numaflow.numaproj.io/vertex-name"] = name
	} else {
		p.labels["app.kubernetes.io/component"] = "mono-vertex"
		p.labels["numaflow.numaproj.io/mono-vertex-name"] = d.name
	}
	return p
}

func templatePod(t *testing.T, d *document) *pod {
	t.Helper()
	var template corev1.PodTemplateSpec
	require.True(t, d.decode(t, &template, "spec", "template"))
	p := &pod{
		owner: d, security: template.Spec.SecurityContext, token: template.Spec.AutomountServiceAccountToken,
		volumes: template.Spec.Volumes, labels: template.Labels, annotations: template.Annotations,
	}
	for _, c := range append(template.Spec.InitContainers, template.Spec.Containers...) {
		p.containers = append(p.containers, container{Container: c})
	}
	var claims []corev1.PersistentVolumeClaim
	d.decode(t, &claims, "spec", "volumeClaimTemplates")
	for i := range claims {
		p.volumes = append(p.volumes, corev1.Volume{Name: claims[i].Name})
	}
	return p
}

// program is the name of the binary in an image of this project; empty for others.
func (c *container) program() string {
	name, _ := splitImage(c.Image)
	if name == command {
		return "numathrottle"
	}
	program, _ := strings.CutPrefix(name, repository)
	if program == name {
		return ""
	}
	return program
}

// repository is what the names of the project's images begin with, command that of the command itself.
const (
	repository = "quay.io/numaproj-contrib/numathrottle-"
	command    = "quay.io/numaproj-contrib/numathrottle"
)

func splitImage(image string) (name, tag string) {
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i], image[i+1:]
	}
	return image, ""
}
