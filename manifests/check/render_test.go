package check

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// The project's folders, as seen from this package.
const (
	manifests  = ".."
	project    = "../.."
	monitoring = "monitoring" // below manifests
)

// A bundle is what one overlay renders to.
type bundle struct {
	name string
	docs []*document
	page string // tells the user which Secrets to make

	example bool // beside a program, not an overlay
}

// A document is one rendered resource.
type document struct {
	kind, name string
	node       *yaml.RNode
}

// kustomize keeps the schema of merge keys in variables of its own.
var kustomizing sync.Mutex

// overlays renders every folder that a user applies.
func overlays(t *testing.T) []bundle {
	t.Helper()
	folders, err := filepath.Glob(manifests + "/overlays/*")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	folders = append(folders, filepath.Join(manifests, monitoring))
	bundles := make([]bundle, len(folders))
	for i, folder := range folders {
		bundles[i] = render(t, folder)
	}
	return bundles
}

// render does what `kubectl kustomize` does: no file outside a folder is read but as a whole folder.
func render(t *testing.T, folder string) bundle {
	t.Helper()
	kustomizing.Lock()
	defer kustomizing.Unlock()
	openapi.ResetOpenAPI() // of one run of kubectl nothing is left for the next
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	require.NoError(t, err, folder)
	page, err := os.ReadFile(filepath.Join(manifests, "README.md"))
	require.NoError(t, err)
	b := bundle{name: filepath.Base(folder), page: string(page)}
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		b.docs = append(b.docs, newDocument(t, string(text)))
	}
	require.NotEmpty(t, b.docs, folder)
	return b
}

func newDocument(t *testing.T, text string) *document {
	t.Helper()
	node, err := yaml.Parse(text)
	require.NoError(t, err)
	return &document{kind: node.GetKind(), name: node.GetName(), node: node}
}

func (d *document) String() string { return d.kind + " " + d.name }

// content is the document as Kubernetes' packages take it.
func (d *document) content() (map[string]any, error) {
	text, err := d.node.MarshalJSON()
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	return content, json.Unmarshal(text, &content) // whole numbers as int64
}

// decode reads a part of the document into a type; false if there is no such part.
func (d *document) decode(t *testing.T, into any, path ...string) bool {
	t.Helper()
	part, err := d.node.Pipe(yaml.Lookup(path...))
	require.NoError(t, err)
	if part == nil {
		return false
	}
	decode(t, part, into)
	return true
}

// decode reads a node into a type of Kubernetes', and refuses what the type does not have.
func decode(t *testing.T, node *yaml.RNode, into any) {
	t.Helper()
	text := []byte(node.YNode().Value) // of a number or a boolean
	if node.YNode().Tag == yaml.NodeTagString {
		text = []byte(strconv.Quote(node.YNode().Value))
	} else if node.YNode().Kind != yaml.ScalarNode {
		var err error
		text, err = node.MarshalJSON()
		require.NoError(t, err)
	}
	require.NoError(t, strictly(text, into), "%s", text)
}

// of returns the documents of one of the kinds.
func (b bundle) of(kinds ...string) []*document {
	var found []*document
	for _, d := range b.docs {
		if slices.Contains(kinds, d.kind) {
			found = append(found, d)
		}
	}
	return found
}

// configMaps are the data of the bundle's ConfigMaps, by name.
func (b bundle) configMaps(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, d := range b.of("ConfigMap") {
		data := map[string]string{}
		d.decode(t, &data, "data")
		all[d.name] = data
	}
	return all
}

// Every folder below manifests/ that can be applied is rendered by some test, so that nothing rots unseen.
func TestOverlaysAreAllRendered(t *testing.T) {
	used := map[string]bool{}
	for _, pattern := range []string{"overlays/*", monitoring} {
		found, err := filepath.Glob(filepath.Join(manifests, pattern))
		require.NoError(t, err)
		for _, f := range found {
			used[f] = true
		}
	}
	for _, folder := range []string{"base", "components"} {
		entries, err := os.ReadDir(filepath.Join(manifests, folder))
		require.NoError(t, err)
		for _, e := range entries {
			path := filepath.Join(manifests, folder, e.Name())
			for from := range maps.Clone(used) {
				markIncluded(t, from, used)
			}
			require.True(t, used[path], "no overlay includes %s", path)
		}
	}
}

// markIncluded follows resources and components.
func markIncluded(t *testing.T, folder string, used map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	require.NoError(t, err)
	var k struct{ Resources, Components []string }
	require.NoError(t, yaml.Unmarshal(text, &k))
	for _, r := range append(k.Resources, k.Components...) {
		if filepath.Ext(r) != "" {
			continue
		}
		path := filepath.Join(folder, r)
		if !used[path] {
			used[path] = true
			markIncluded(t, path, used)
		}
	}
}
