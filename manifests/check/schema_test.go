package check

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// numaflow is the API group of Numaflow's resources.
const numaflow = "numaflow.numaproj.io"

// A definition is the schema of one of Numaflow's resources.
type definition struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
}

// definitionsFolder is where the schemas are looked for.
func definitionsFolder() string {
	return cmp.Or(os.Getenv("NUMAFLOW_CRDS"), filepath.Join(project, "../shared/crds"))
}

// needDefinitions skips the test when there are none.
func needDefinitions(t *testing.T, known map[string]definition) {
	t.Helper()
	if len(known) == 0 {
		t.Skipf("no definitions of Numaflow's resources in %s: set NUMAFLOW_CRDS to a folder with numaflow.numaproj.io_*.yaml", definitionsFolder())
	}
}

// definitions reads the schemas, by apiVersion and kind; none if they are not there.
func definitions(t *testing.T) map[string]definition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(definitionsFolder(), numaflow+"_*.yaml"))
	require.NoError(t, err)
	all := map[string]definition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		node, err := yaml.Parse(string(text))
		require.NoError(t, err)
		asJSON, err := node.MarshalJSON()
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, json.Unmarshal(asJSON, &crd))
		for _, v := range crd.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil))
			structural, err := schema.NewStructural(&internal)
			require.NoError(t, err)
			validator, _, err := validation.NewSchemaValidator(&internal)
			require.NoError(t, err)
			all[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = definition{structural, validator}
		}
	}
	return all
}

// faults says what is wrong with a resource, unknown fields first: the API server would drop those without a word.
func (d definition) faults(content map[string]any) []string {
	var found []string
	copied := runtime.DeepCopyJSON(content)
	for _, path := range pruning.PruneWithOptions(copied, d.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		found = append(found, "unknown field "+path)
	}
	for _, err := range validation.ValidateCustomResource(nil, content, d.validator) {
		found = append(found, err.Error())
	}
	return found
}

// scheme holds the kinds of Kubernetes' own and of the Prometheus operator that the manifests use.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme, monitoringv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}()

// strictly decodes JSON and refuses fields that are unknown or given twice, in the wrong case too.
func strictly(text []byte, into any) error {
	faults, err := kjson.UnmarshalStrict(text, into)
	return errors.Join(append(faults, err)...)
}

// schemaFaults holds each document against its schema or type. Without definitions Numaflow's are left out.
func schemaFaults(t *testing.T, b bundle, known map[string]definition) []string {
	t.Helper()
	var found []string
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, d := range b.docs {
		if custom, ok := known[d.node.GetApiVersion()+" "+d.kind]; ok {
			content, err := d.content()
			require.NoError(t, err)
			for _, fault := range custom.faults(content) {
				found = append(found, fmt.Sprintf("%s: %s", d, fault))
			}
			continue
		}
		if len(known) == 0 && strings.HasPrefix(d.node.GetApiVersion(), numaflow+"/") {
			continue
		}
		text, err := d.node.MarshalJSON()
		require.NoError(t, err)
		if _, _, err := decoder.Decode(text, nil, nil); err != nil {
			found = append(found, fmt.Sprintf("%s: %v", d, err))
		}
	}
	return found
}

func TestSchemas(t *testing.T) {
	known := definitions(t)
	for _, b := range overlays(t) {
		t.Run(b.name, func(t *testing.T) {
			require.Empty(t, schemaFaults(t, b, known))
			needDefinitions(t, known)
		})
	}
}

// The pipelines of the examples are applied as they are.
func TestExamplesMatchTheSchemas(t *testing.T) {
	known := definitions(t)
	for _, b := range examples(t) {
		t.Run(b.name, func(t *testing.T) {
			require.Empty(t, schemaFaults(t, b, known))
			needDefinitions(t, known)
		})
	}
}

// examples reads the pipelines beside the programs.
func examples(t *testing.T) []bundle {
	t.Helper()
	files, err := filepath.Glob(project + "/examples/*/pipeline.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	bundles := make([]bundle, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		bundles[i] = bundle{name: filepath.Base(filepath.Dir(file)), page: string(text), example: true}
		for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
			bundles[i].docs = append(bundles[i].docs, newDocument(t, string(part)))
		}
	}
	return bundles
}
