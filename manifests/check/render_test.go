package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// project is the repository, as seen from this package.
const project = "../.."

// A bundle is the result of one overlay, of an example's pipeline, or of the chart with one file of values.
type bundle struct {
	name    string
	docs    []*document
	page    string // tells the user which Secrets to make
	example bool   // beside a program, not an overlay
}

// A document is one rendered resource.
type document struct {
	kind, name string
	node       *kyaml.RNode
}

// must returns a value, and panics if there is none.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// file returns the text of a file of the project.
func file(path string) string { return string(must(os.ReadFile(filepath.Join(project, path)))) }

// files returns the paths that match a pattern. There must be at least one.
func files(pattern string) []string {
	found := must(filepath.Glob(filepath.Join(project, pattern)))
	if len(found) == 0 {
		panic("nothing matches " + pattern)
	}
	return found
}

// bundles returns everything that a user applies.
var bundles = sync.OnceValue(func() (all []bundle) {
	for _, folder := range append(files("manifests/overlays/*"), project+"/manifests/monitoring") {
		all = append(all, render(folder))
	}
	for _, path := range files("examples/*/pipeline.yaml") {
		text := string(must(os.ReadFile(path)))
		all = append(all, bundle{name: filepath.Base(filepath.Dir(path)), page: text, example: true, docs: documents(text)})
	}
	for _, path := range files("charts/numathrottle/ci/*.yaml") {
		all = append(all, chart(path))
	}
	return all
})

func overlay(name string) bundle { return render(project + "/manifests/overlays/" + name) }

// render does the same as `kubectl kustomize`: it reads no file outside a folder, except whole folders.
func render(folder string) bundle {
	openapi.ResetOpenAPI() // one run of kubectl leaves nothing for the next
	resources := must(krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder))
	return bundle{name: filepath.Base(folder), page: file("manifests/README.md"), docs: documents(string(must(resources.AsYaml())))}
}

// chart renders the chart with a file of values.
func chart(path string) bundle {
	rendered := must(template(string(must(os.ReadFile(path)))))
	return bundle{name: "chart-" + strings.TrimSuffix(filepath.Base(path), ".yaml"), page: file("manifests/README.md"), docs: documents(rendered)}
}

// template renders the chart with values, as `helm template` does.
func template(values string) (string, error) {
	loaded := must(loader.Load(project + "/charts/numathrottle"))
	options := chartutil.ReleaseOptions{Name: "throttled", Namespace: "default", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(loaded, must(chartutil.ReadValues([]byte(values))), options, chartutil.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	rendered, err := engine.Render(loaded, all)
	var text strings.Builder
	for name, part := range rendered {
		if filepath.Ext(name) == ".yaml" {
			text.WriteString("\n---\n" + part)
		}
	}
	return text.String(), err
}

func documents(text string) (docs []*document) {
	for part := range strings.SplitSeq("\n"+text, "\n---\n") {
		if strings.Contains(part, "\nkind: ") {
			node := kyaml.MustParse(part)
			docs = append(docs, &document{kind: node.GetKind(), name: node.GetName(), node: node})
		}
	}
	return docs
}

func (d *document) String() string { return d.kind + " " + d.name }

// decode reads a part of the document into a type of Kubernetes. It reports whether there is such a part.
func (d *document) decode(into any, path ...string) bool { return decode(d.node, into, path...) }

func decode(node *kyaml.RNode, into any, path ...string) bool {
	part := must(node.Pipe(kyaml.Lookup(path...)))
	if part == nil {
		return false
	}
	if err := yaml.UnmarshalStrict([]byte(part.MustString()), into); err != nil {
		panic(err)
	}
	return true
}

// of returns the documents of one kind.
func (b bundle) of(kind string) []*document {
	return slices.DeleteFunc(slices.Clone(b.docs), func(d *document) bool { return d.kind != kind })
}
