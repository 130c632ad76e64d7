package p4_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/p4lb/p4lb/internal/p4"
)

// TestSpecification runs the archives of testdata/spec. Each begins with a section
// of the P4_16 specification and the rule that it shows. The expected packets
// follow from the rule by hand. A program may be for v1model or for TNA.
func TestSpecification(t *testing.T) {
	v1model, err := os.ReadFile(features + "/frame.p4")
	if err != nil {
		t.Fatal(err)
	}
	tna, err := os.ReadFile(tofinoFeatures + "/frame.p4")
	if err != nil {
		t.Fatal(err)
	}
	for name, archive := range featureArchives(t, "testdata/spec") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !bytes.HasPrefix(archive.Comment, []byte("P4_16 section")) {
				t.Error("the archive does not begin with a section of the specification")
			}
			frame := v1model
			if bytes.Contains(archive.Files[0].Data, []byte("na.p4>")) {
				frame = tna
			}
			runFeature(t, frame, archive, p4.Options{})
		})
	}
}
