// Package manifesttest helps to test that readers of manifests use types instead of texts.
package manifesttest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// sentences lists the fields that contain texts for readers.
var sentences = []string{"Meaning", "Title", "What", "Why", "Error", "Packet", "Symbol"}

// Wipe returns a copy of a manifest with every sentence replaced by x.
func Wipe(m *manifest.Manifest) (*manifest.Manifest, error) {
	text, err := m.JSON()
	if err != nil {
		return nil, err
	}
	bare, err := manifest.Decode("a copy", text)
	if err != nil {
		return nil, err
	}
	if n := wipe(reflect.ValueOf(bare).Elem()); n < len(m.Registers)+len(m.Tables) {
		return nil, fmt.Errorf("only %d sentences", n)
	}
	return bare, nil
}

// wipe replaces the texts, and returns their number.
func wipe(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case !f.IsExported():
			case slices.Contains(sentences, f.Name):
				v.Field(i).SetString("x")
				n++
			default:
				n += wipe(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += wipe(v.Index(i))
		}
	}
	return n
}
