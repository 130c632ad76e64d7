package spec

import (
	"io/fs"
	"strings"
	"testing"
)

// TestFlowAfterEnd: a listed flow that starts after the run has no completion time. It used to
// count with a negative one.
func TestFlowAfterEnd(t *testing.T) {
	for _, test := range []struct{ start, err string }{
		{"0.501", ""},
		{"33", "t.yaml:4: traffic[0]: late.txt: flow 2 starts at 33s, and the run ends after 501ms (duration and drain): want a longer drain"},
	} {
		read := func(name string) ([]byte, error) {
			if name != "late.txt" {
				return nil, fs.ErrNotExist
			}
			return []byte("src,dst,bytes,start_s\n0,1,1000,0\n1,2,1000," + test.start + "\n"), nil
		}
		_, err := Load("t.yaml", []byte(`
name: late
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2}}
traffic: [{file: late.txt}]
schemes: [ecmp]
duration: 1ms
drain: 500ms
`), read, nil)
		switch {
		case test.err == "" && err != nil:
			t.Errorf("start %s: %v", test.start, err)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("start %s: error %v: want %s", test.start, err, test.err)
		}
	}
}
