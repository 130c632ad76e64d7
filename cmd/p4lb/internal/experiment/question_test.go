package experiment

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestSameDefaults: the same question by flags and by a file has the same runs, and
// with no file can a default be missing that flags have.
func TestSameDefaults(t *testing.T) {
	for _, c := range []struct {
		flags []string
		file  string
	}{
		{nil, ""},
		{[]string{"--load", "0.7", "--transport", "dctcp"}, "topology: leaf-spine\nloads: [0.7]\ntransport: {kind: dctcp}\n"},
		{[]string{"--transport", "dcqcn", "--pfc"}, "transport: dcqcn\nswitches: {pfc: true}\n"},
		{[]string{"--transport", "dctcp", "--ecn", "none", "--cut", "none"}, "transport: dctcp\nswitches: {ecn: none}\ntraffic: [{cut: none}]\n"},
		{[]string{"--topology", "qall", "--transport", "dctcp"}, "topology: qall\ntransport: dctcp\n"}, // of queues that 65 packets do not fit into
		{[]string{"--workload", "webserver", "--load", "0.4", "--load", "0.6"}, "traffic: [{workload: webserver}]\nloads: [0.6, 0.4]\n"},
		{[]string{"--load-of", "hosts", "--pattern", "permutation", "--duration", "3ms", "--seeds", "2"}, "traffic: [{load-of: hosts, pattern: permutation}]\nduration: 3ms\nseeds: 2\n"},
		{[]string{"--parameters", "default"}, "parameters: default\n"},
	} {
		q, cmd := &labQuestion{}, &cobra.Command{}
		q.addFlags(cmd)
		if err := cmd.ParseFlags(append([]string{"--scheme", "drill", "--vs", "ecmp"}, c.flags...)); err != nil {
			t.Fatal(err)
		}
		asked, err := q.experiment(cmd)
		if err != nil {
			t.Fatal(err)
		}
		written, err := spec.Load("x.yaml", []byte("schemes: [drill, ecmp]\n"+c.file), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, b := runKeys(t, asked), runKeys(t, written)
		if len(a) != len(b) || len(a) < 4 {
			t.Fatalf("%q: %d runs by flags, %d by file", c.flags, len(a), len(b))
		}
		for name, key := range a {
			if b[name] != key {
				t.Errorf("%q: %s differs by flags and by file:\n%s", c.flags, name, c.file)
			}
		}
	}
}

func runKeys(t *testing.T, x *spec.Experiment) map[string]string {
	t.Helper()
	jobs, err := (&lab.Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, j := range jobs {
		keys[j.Name()] = j.Key()
	}
	return keys
}
