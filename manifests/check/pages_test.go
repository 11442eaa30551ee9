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
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// blocks returns the blocks of one language of a page.
func blocks(page, language string) (found []string) {
	for _, m := range regexp.MustCompile("(?sm)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(file(page), -1) {
		found = append(found, m[1])
	}
	return found
}

// The overlay on the page renders, its patches apply, and the result passes every check.
func TestOverlayOfThePage(t *testing.T) {
	found := 0
	for _, block := range blocks("manifests/README.md", "yaml") {
		if !strings.Contains(block, "kind: Kustomization") {
			continue
		}
		folder := t.TempDir()
		there := must(filepath.Rel(folder, must(filepath.Abs(project+"/manifests"))))
		remote := regexp.MustCompile(`https://github\.com/numaproj-contrib/numathrottle//manifests/([\w/-]+)\?ref=main`)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(remote.ReplaceAllString(block, there+"/$1")), 0o600))
		b := render(folder)
		require.Empty(t, b.check(t))
		text := b.of("Pipeline")[0].node.MustString()
		require.Contains(t, text, "LLM_MAP_REQUESTS_PER_MINUTE")
		require.Contains(t, text, "topic: tickets")
		require.Contains(t, text, "NUMATHROTTLE_STORE_PASSWORD", "the patch has replaced the list")
		found++
	}
	require.Equal(t, 1, found)
}

// Numaflow accepts the limit from which docs/migration.md starts, and the page names every field of Numaflow's limits.
func TestMigrationKnowsEveryField(t *testing.T) {
	pipeline, ok := definitions()["numaflow.numaproj.io/v1alpha1 Pipeline"]
	if !ok {
		t.Skip("the definitions are not there")
	}
	for _, block := range blocks("docs/migration.md", "yaml") {
		if strings.Contains(block, "rateLimit:") {
			spec := kyaml.MustParse("apiVersion: numaflow.numaproj.io/v1alpha1\nkind: Pipeline\nmetadata: {name: p}\nspec:\n  vertices:\n  - name: v\n" +
				regexp.MustCompile(`(?m)^`).ReplaceAllString(block, "    "))
			require.Empty(t, pipeline.faults(must(spec.MarshalJSON())))
		}
	}
	var named func(s schema.Structural)
	named = func(s schema.Structural) {
		for name, field := range s.Properties {
			require.Regexp(t, "`[^`]*\\b"+name+"\\b", file("docs/migration.md"), "docs/migration.md does not say what becomes of %s", name)
			if _, selector := field.Properties["key"]; !selector {
				named(field)
			}
		}
	}
	named(pipeline.structural.Properties["spec"].Properties["limits"].Properties["rateLimit"])
}

// The programs accept the files that their pages show.
func TestFilesOfThePages(t *testing.T) {
	for program, given := range map[string]string{"llm-map": "LLM_MAP_API_KEY", "http-sink": "HTTP_SINK_BEARER_TOKEN"} {
		whole := 0
		for _, block := range blocks("examples/"+program+"/README.md", "yaml") {
			// A Secret that is mounted somewhere; here the same as a variable.
			text := regexp.MustCompile(`(?m)^(apiKeyFile|bearerTokenFile): .*$`).ReplaceAllString(block, "")
			if text == block {
				continue // a part of a file, which the program's own tests load
			}
			whole++
			path := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			cmd := exec.CommandContext(t.Context(), filepath.Join(build(), program), "--check")
			cmd.Env = []string{"NUMATHROTTLE_CONFIG=" + path, given + "=placeholder", "AZURE_KEY=placeholder", "NUMATHROTTLE_POOL=p"}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		require.NotZero(t, whole, program)
	}
}

// The commands of the first page use the names of its overlay.
func TestCommandsOfTheFirstPage(t *testing.T) {
	page, b := file("docs/first-pipeline.md"), overlay("first-pipeline")
	require.Contains(t, page, "kubectl get pipeline "+b.of("Pipeline")[0].name)
	require.Contains(t, page, "kubectl logs deployment/"+b.of("Deployment")[0].name)
	for _, p := range b.pods() {
		for _, c := range p.containers() {
			if program(&c) != "" {
				require.Contains(t, page, "kind load docker-image "+c.Image+"\n", "the pods ask for another image")
			}
		}
	}
	out := must(b.of("Pipeline")[0].node.Pipe(kyaml.Lookup("spec", "vertices", "1", "name")))
	require.Contains(t, page, "numaflow.numaproj.io/vertex-name="+out.YNode().Value+" -o name", "the patch scales another vertex")
}
