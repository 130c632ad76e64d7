package manifest

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// Schema returns the JSON Schema of manifests, derived from the types of this package. Editors
// use it for completion and for marking errors.
func Schema() []byte {
	s := schemaMaker{defs: map[string]any{}}
	root := s.object(reflect.TypeFor[Manifest]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "p4lb manifest"
	root["properties"].(map[string]any)["version"] = map[string]any{"const": Version}
	root["required"] = []string{"version", "scheme", "arch"}
	root["$defs"] = s.defs
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps of words and numbers can always be encoded
	}
	return append(text, '\n')
}

// A schemaMaker converts types to schemas. Each named type becomes a definition.
type schemaMaker struct{ defs map[string]any }

func (s schemaMaker) of(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem())
	}
	if t != reflect.TypeFor[Duration]() && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return map[string]any{"type": []string{"string", "number"}}
	}
	if t == reflect.TypeFor[Duration]() {
		return map[string]any{"type": "string", "pattern": `^[0-9.]+(ns|us|ms|s|m|h)([0-9.]+(ns|us|ms|s|m))*$`}
	}
	if e, ok := reflect.Zero(t).Interface().(enumeration); ok {
		return s.define(t, func() map[string]any {
			// each word with its description
			list := lists.Map(e.Words(), func(w Word) any { return map[string]any{"const": w.Name, "description": w.About} })
			return map[string]any{"oneOf": list}
		})
	}
	switch t.Kind() {
	case reflect.Struct:
		return s.define(t, func() map[string]any { return s.object(t) })
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		out := map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
		if e, ok := reflect.Zero(t.Key()).Interface().(enumeration); ok {
			out["propertyNames"] = map[string]any{"enum": wordNames(e)}
		}
		return out
	case reflect.String:
		return map[string]any{"type": []string{"string", "number"}}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	}
	return map[string]any{"type": "integer"}
}

// define adds the definition of a type unless it exists, and returns a reference to it.
func (s schemaMaker) define(t reflect.Type, make func() map[string]any) map[string]any {
	if s.defs[t.Name()] == nil {
		s.defs[t.Name()] = true // mark it as being defined, because a type may contain itself
		s.defs[t.Name()] = make()
	}
	return map[string]any{"$ref": "#/$defs/" + t.Name()}
}

func (s schemaMaker) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range tree.FieldsOf(t) {
		properties[f.Key] = s.of(f.Type)
		if _, options, _ := strings.Cut(t.FieldByIndex(f.Index).Tag.Get("json"), ","); options == "" {
			required = append(required, f.Key)
		}
	}
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}
