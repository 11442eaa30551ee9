package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// A Schema is a JSON schema.
type Schema = map[string]any

// The forms of a value in a file of settings. All may be quoted.
var (
	digits     = Schema{"type": "string", "pattern": `^-?[0-9]+$`}
	anInteger  = Schema{"anyOf": []any{Schema{"type": "integer"}, digits}}
	aBoolean   = Schema{"enum": []any{true, false, "true", "false"}}
	aDuration  = Schema{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`}
	aScalar    = Schema{"type": []any{"string", "number", "boolean"}}
	aStructure = Schema{"type": []any{"object", "string"}}
)

// SchemaOf returns the schema of a mapping with the settings of fields: their names and forms. Load checks the rest.
func SchemaOf[C any](fields []Field[C]) Schema {
	properties := Schema{}
	for i := range fields {
		v := &fields[i].Value
		form := v.form
		switch {
		case v.kind == aMapping:
			form = aStructure
		case form == nil:
			form = aScalar
		}
		if v.low < v.high && v.kind == aNumber {
			form = Schema{"anyOf": []any{Schema{"type": "integer", "minimum": v.low, "maximum": v.high}, digits}}
		}
		properties[fields[i].Key] = form
	}
	return Schema{"type": "object", "additionalProperties": false, "properties": properties}
}

// ReplaceDefinition returns a schema file with the definition of that name replaced.
func ReplaceDefinition(file []byte, name string, is Schema) ([]byte, error) {
	var whole struct {
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	if err := json.Unmarshal(file, &whole); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(file, &all); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	definitions := maps.Clone(whole.Definitions)
	var err error
	if definitions[name], err = json.Marshal(is); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if all["definitions"], err = json.Marshal(definitions); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return b.Bytes(), nil
}
