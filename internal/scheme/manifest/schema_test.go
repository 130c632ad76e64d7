package manifest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

var update = flag.Bool("update", false, "rewrite the schema")

// TestSchema: the schema in docs equals the one generated from the types.
func TestSchema(t *testing.T) {
	const file = "../../../docs/manifest.schema.json"
	if *update {
		if err := os.WriteFile(file, manifest.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, manifest.Schema()) {
		t.Errorf("%s differs from the types: go test ./internal/scheme/manifest -run TestSchema -update", file)
	}
	var schema struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(have, &schema); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Kind", "Purpose", "Fact", "TaskKind", "Register"} {
		if schema.Defs[name] == nil {
			t.Errorf("the schema does not define %s", name)
		}
	}
}
