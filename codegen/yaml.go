package codegen

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"github.com/p4lb/p4lb/plain"
)

// decode reads a file's YAML into a value, strictly. The error names the file
// and the line, and for a key that there is not the nearest.
func decode(file, text string, into any) error {
	if line, err := plain.Check([]byte(text)); err != nil {
		return fmt.Errorf("%s:%d: %w", file, line, err)
	}
	tree, err := parser.ParseBytes([]byte(text), 0)
	if err == nil {
		if line := plain.Unplain(tree); line > 0 {
			return fmt.Errorf("%s:%d: want plain keys and values, without anchors, tags and merges", file, line)
		}
		err = yaml.UnmarshalWithOptions([]byte(text), into, yaml.Strict())
	}
	if err == nil {
		return nil
	}
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		return fmt.Errorf("%s:1: %w", file, err)
	}
	why := errors.New(at.GetMessage())
	var field *yaml.UnknownFieldError
	if errors.As(err, &field) {
		why = near("key", at.GetToken().Value, keysOf(reflect.TypeOf(into)))
	}
	return fmt.Errorf("%s:%d: %w", file, at.GetToken().Position.Line, why)
}

// keysOf lists the keys that a type has in YAML, those of what it holds too.
func keysOf(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return keysOf(t.Elem())
	case reflect.Struct:
		var list []string
		for f := range t.Fields() {
			if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "" && key != "-" {
				list = append(append(list, key), keysOf(f.Type)...)
			}
		}
		return list
	}
	return nil
}

// lineOf is the line of a value in a YAML text, 0 where it is not.
func lineOf(text, path string) int {
	p, err := yaml.PathString(path)
	if err != nil {
		return 0
	}
	node, err := p.ReadNode(strings.NewReader(text))
	if err != nil || node == nil || node.GetToken() == nil {
		return 0
	}
	return node.GetToken().Position.Line
}
