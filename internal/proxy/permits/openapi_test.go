package permits

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/proxy"
)

// A description is openapi.yaml, with its schemas compiled.
type description struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
}

var described = sync.OnceValues(func() (*description, error) {
	var doc any
	if err := yaml.Unmarshal(openAPI, &doc); err != nil {
		return nil, err
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	doc, err = jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", doc); err != nil {
		return nil, err
	}
	root, _ := doc.(map[string]any)
	return &description{doc: root, compiler: c}, nil
})

// at returns what stands at a path below the description's root; nil for nothing.
func (d *description) at(path ...string) any {
	var v any = d.doc
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// conforms compares a call that was made with the description. What is sent is compared only when it was taken.
func conforms(t *testing.T, path string, status int, request string, response []byte) {
	t.Helper()
	d, err := described()
	require.NoError(t, err)
	name := "ErrorResponse"
	if d.at("paths", path, "post") != nil {
		if status == 200 {
			ref := text(t, d.at("paths", path, "post", "responses", "200", "content", "application/json", "schema", "$ref"))
			name = ref[strings.LastIndex(ref, "/")+1:]
			validate(t, d, text(t, d.at("paths", path, "post", "requestBody", "content", "application/json", "schema", "$ref")), []byte(request))
		} else if d.at("paths", path, "post", "responses", strconv.Itoa(status)) == nil {
			require.Contains(t, []int{400, 401, 405, 413, 415, 500}, status, "this status of %s is not described", path)
		}
	}
	validate(t, d, "#/components/schemas/"+name, response)
}

func validate(t *testing.T, d *description, ref string, text []byte) {
	t.Helper()
	schema, err := d.compiler.Compile("openapi.json" + ref)
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(v), "%s", text)
}

// Each call is described, and each that is described exists.
func TestTheDescriptionHasEveryCall(t *testing.T) {
	d, err := described()
	require.NoError(t, err)
	var documented, served []string
	for path, item := range object(t, d.at("paths")) {
		for method := range object(t, item) {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	for pattern := range newDesk(apiConfig{}.withDefaults()).routes() {
		served = append(served, pattern)
	}
	require.ElementsMatch(t, documented, served)
}

// Each schema has the fields of its type, and asks for those that are never left out.
func TestTheSchemasAreThoseOfTheTypes(t *testing.T) {
	d, err := described()
	require.NoError(t, err)
	types := map[string]any{
		"AcquireRequest": acquireRequest{}, "AcquireResponse": acquireResponse{}, "SettleRequest": settleRequest{},
		"CancelRequest": cancelRequest{}, "DoneResponse": doneResponse{}, "ReportRequest": reportRequest{},
		"ReportResponse": reportResponse{}, "PauseRequest": pauseRequest{}, "PauseResponse": pauseResponse{},
	}
	for name, v := range types {
		compareFields(t, name, object(t, d.at("components", "schemas", name)), reflect.TypeOf(v))
	}
	compareFields(t, "error", object(t, d.at("components", "schemas", "ErrorResponse", "properties", "error")), reflect.TypeFor[proxy.Error]())
	for name := range object(t, d.at("components", "schemas")) {
		if _, ok := types[name]; !ok {
			require.Contains(t, []string{"Outcome", "ErrorResponse"}, name)
		}
	}
	words, _ := d.at("components", "schemas", "Outcome", "enum").([]any)
	require.Len(t, words, len(outcomes))
	for _, word := range words {
		require.Contains(t, outcomes, word)
	}
}

func compareFields(t *testing.T, name string, schema map[string]any, typ reflect.Type) {
	t.Helper()
	var fields, required []string
	for f := range typ.Fields() {
		key, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "-" {
			continue
		}
		fields = append(fields, key)
		if rest != "omitempty" {
			required = append(required, key)
		}
	}
	var documented []string
	for key := range object(t, schema["properties"]) {
		documented = append(documented, key)
	}
	require.ElementsMatch(t, fields, documented, name)
	var asked []string
	if list, ok := schema["required"].([]any); ok {
		for _, key := range list {
			asked = append(asked, text(t, key))
		}
	}
	slices.Sort(asked)
	slices.Sort(required)
	require.Equal(t, required, asked, name)
}
