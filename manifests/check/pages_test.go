package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// blocks are the blocks of YAML of a page.
func blocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(project, page))
	require.NoError(t, err)
	var found []string
	for _, m := range regexp.MustCompile("(?sm)^```yaml\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	require.NotEmpty(t, found, page)
	return found
}

// The overlay that the page proposes renders, and what it renders to passes every check.
func TestOverlayOfThePage(t *testing.T) {
	known, programs := definitions(t), build(t)
	found := 0
	for _, block := range blocks(t, "manifests/README.md") {
		if !strings.Contains(block, "kind: Kustomization") {
			continue
		}
		folder := t.TempDir()
		here, err := filepath.Abs(manifests)
		require.NoError(t, err)
		there, err := filepath.Rel(folder, here)
		require.NoError(t, err)
		remote := regexp.MustCompile(`https://github\.com/numaproj-contrib/numathrottle//manifests/([\w/-]+)\?ref=main`)
		require.Regexp(t, remote, block)
		block = remote.ReplaceAllString(block, there+"/$1")
		require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(block), 0o600))
		b := render(t, folder)
		require.Empty(t, allFaults(t, b, known, programs))
		// The patches have found what they are for.
		text := b.of("Pipeline")[0].node.MustString()
		require.Contains(t, text, "LLM_MAP_REQUESTS_PER_MINUTE")
		require.Contains(t, text, "topic: tickets")
		require.NotContains(t, text, "generator:")
		require.Contains(t, text, "NUMATHROTTLE_STORE_PASSWORD", "the patch has replaced the list")
		found++
	}
	require.Equal(t, 1, found)
}

// Numaflow takes the limit that the page about it starts from, and the tables name every field that there is.
func TestMigrationKnowsEveryField(t *testing.T) {
	known := definitions(t)
	needDefinitions(t, known)
	pipeline := known[numaflow+"/v1alpha1 Pipeline"]
	page, err := os.ReadFile(filepath.Join(project, "docs/migration.md"))
	require.NoError(t, err)
	var before string
	for _, block := range blocks(t, "docs/migration.md") {
		if strings.Contains(block, "rateLimit:") {
			before = block
		}
	}
	spec := "apiVersion: numaflow.numaproj.io/v1alpha1\nkind: Pipeline\nmetadata: {name: p}\nspec:\n  vertices:\n  - name: v\n" +
		regexp.MustCompile(`(?m)^`).ReplaceAllString(before, "    ")
	content, err := newDocument(t, spec).content()
	require.NoError(t, err)
	require.Empty(t, pipeline.faults(content))

	limits := pipeline.structural.Properties["spec"].Properties["limits"].Properties["rateLimit"]
	for _, name := range fieldsOf(&limits) {
		require.Regexp(t, "`[^`]*\\b"+name+"\\b", string(page), "docs/migration.md does not say what becomes of %s", name)
	}
}

// fieldsOf are the names of all fields below s, but for those of Kubernetes' own selectors.
func fieldsOf(s *schema.Structural) []string {
	var names []string
	for name, field := range s.Properties {
		names = append(names, name)
		if _, selector := field.Properties["key"]; !selector {
			names = append(names, fieldsOf(&field)...)
		}
	}
	return names
}

// The files that the programs' pages show are such as the programs take.
func TestFilesOfThePages(t *testing.T) {
	programs := build(t)
	for program, given := range map[string]string{"llm-map": "LLM_MAP_API_KEY", "http-sink": "HTTP_SINK_BEARER_TOKEN"} {
		whole := 0
		for _, block := range blocks(t, "examples/"+program+"/README.md") {
			file := filepath.Join(t.TempDir(), "config.yaml")
			// A Secret that is mounted somewhere; the same as a variable here.
			text := regexp.MustCompile(`(?m)^(apiKeyFile|bearerTokenFile): .*$`).ReplaceAllString(block, "")
			if text == block {
				continue // a part of a file, which the program's own tests load
			}
			whole++
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			cmd := exec.CommandContext(t.Context(), filepath.Join(programs, program), "--check")
			cmd.Env = []string{"NUMATHROTTLE_CONFIG=" + file, given + "=placeholder", "AZURE_KEY=placeholder", "NUMATHROTTLE_POOL=p"}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		require.NotZero(t, whole, program)
	}
}

// The commands of the first page name what its overlay has.
func TestCommandsOfTheFirstPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(project, "docs/first-pipeline.md"))
	require.NoError(t, err)
	b := render(t, manifests+"/overlays/first-pipeline")
	pipelines := b.of("Pipeline")
	require.Contains(t, string(page), "kubectl get pipeline "+pipelines[0].name)
	require.Contains(t, string(page), "kubectl logs deployment/"+b.of("Deployment")[0].name)
	require.Contains(t, string(page), "numaflow.numaproj.io/vertex-name=out -o name")
	for _, p := range b.pods(t) {
		for i := range p.containers {
			if c := &p.containers[i]; c.program() != "" {
				require.Contains(t, string(page), "kind load docker-image "+c.Image+"\n", "the pods ask for another image")
			}
		}
	}
	out, err := pipelines[0].node.Pipe(yaml.Lookup("spec", "vertices", "1", "name"))
	require.NoError(t, err)
	require.Equal(t, "out", out.YNode().Value, "the patch scales another vertex")
	for _, overlay := range regexp.MustCompile(`//manifests/(overlays/[\w-]+)`).FindAllStringSubmatch(string(page), -1) {
		require.DirExists(t, filepath.Join(manifests, overlay[1]))
	}
}
