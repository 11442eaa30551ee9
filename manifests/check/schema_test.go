package check

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
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
	"sigs.k8s.io/yaml"
)

// A definition is the schema of one of Numaflow's resources.
type definition struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
}

// definitions returns the schemas by apiVersion and kind; none if they are not there.
var definitions = sync.OnceValue(func() map[string]definition {
	folder := cmp.Or(os.Getenv("NUMAFLOW_CRDS"), project+"/../shared/crds")
	all := map[string]definition{}
	for _, path := range must(filepath.Glob(filepath.Join(folder, "numaflow.numaproj.io_*.yaml"))) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(must(os.ReadFile(path)), &crd); err != nil {
			panic(err)
		}
		for _, v := range crd.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				panic(err)
			}
			validator, _, err := validation.NewSchemaValidator(&internal)
			all[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = definition{must(schema.NewStructural(&internal)), must(validator, err)}
		}
	}
	return all
})

// faults returns the faults of a resource. Unknown fields come first: the API server drops them silently.
func (d definition) faults(text []byte) (found []string) {
	content := map[string]any{}
	if err := json.Unmarshal(text, &content); err != nil { // integers as int64
		panic(err)
	}
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(runtime.DeepCopyJSON(content), d.structural, true, options) {
		found = append(found, "unknown field "+path)
	}
	for _, err := range validation.ValidateCustomResource(nil, content, d.validator) {
		found = append(found, err.Error())
	}
	return found
}

// decoder knows the kinds of Kubernetes and of the Prometheus operator that the manifests use.
var decoder = func() runtime.Decoder {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, networkingv1.AddToScheme, monitoringv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer()
}()

// schemas validates each document by its schema or type.
func (r *report) schemas(b bundle) {
	for _, d := range b.docs {
		text := must(d.node.MarshalJSON())
		if custom, ok := definitions()[d.node.GetApiVersion()+" "+d.kind]; ok {
			for _, fault := range custom.faults(text) {
				r.addf("%s: %s", d, fault)
			}
		} else if d.node.GetApiVersion() == "keda.sh/v1alpha1" {
			if err := yaml.UnmarshalStrict(text, &scaledObject{}); err != nil {
				r.addf("%s: %v", d, err)
			}
		} else if len(definitions()) > 0 || !strings.HasPrefix(d.node.GetApiVersion(), "numaflow.numaproj.io/") {
			if _, _, err := decoder.Decode(text, nil, nil); err != nil {
				r.addf("%s: %v", d, err)
			}
		}
	}
}

func TestDefinitions(t *testing.T) {
	if len(definitions()) == 0 {
		t.Skip("Numaflow's resources are not validated: set NUMAFLOW_CRDS to a folder with numaflow.numaproj.io_*.yaml")
	}
	require.Contains(t, definitions(), "numaflow.numaproj.io/v1alpha1 Pipeline")
}
