package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestAdvised: every row of the catalogue uses its advised values, and values of the
// row take precedence.
func TestAdvised(t *testing.T) {
	leftToPlainRun(t)
	for _, network := range []string{"leaf-spine", "qall", "qdaps-star", "rlb-12x12"} { // queues, few packets, slow paths, a buffer
		text := fmt.Sprintf("topology: %s\nparameters: advised\nschemes: [%s]\n", network, strings.Join(codegen.Names(), ", "))
		if _, err := spec.Load("x.yaml", []byte(text), nil, nil); err != nil {
			t.Errorf("%s: %v", network, err)
		}
	}
	x, err := spec.Load("x.yaml", []byte(`
topology: leaf-spine
parameters: advised
schemes: [drill, {scheme: drill, label: own, set: {tb: 7us}}, letflow, ecmp]
`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	top, err := x.Cases[0].Network(spec.NoFiles)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]string{{"tb": "2us"}, {"tb": "7us"}, {"gap": "154us"}, {}} {
		set, err := x.Parameters(&x.Schemes[i], &x.Cases[0], top)
		if err != nil || fmt.Sprint(set) != fmt.Sprint(want) {
			t.Errorf("%s: %v, %v, want %v", x.Schemes[i].Label, set, err, want)
		}
	}
	if _, err := spec.Load("x.yaml", []byte("parameters: best\nschemes: [ecmp]\n"), nil, nil); err == nil || !strings.Contains(err.Error(), `parameters "best": want advised or default`) {
		t.Errorf("%v", err)
	}
}
