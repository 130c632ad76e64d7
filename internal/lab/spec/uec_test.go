package spec_test

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestUEC refuses what hosts and switches cannot have, with the place in the file.
func TestUEC(t *testing.T) {
	const head = "name: x\nschemes: [ecmp%s]\ntraffic: [{collective: all-reduce, size: 1MB}]\n"
	for _, c := range []struct{ text, arch, want string }{
		{"transport: {kind: uec, uec: {control: vegas}}", "", `t.yaml:4: transport: uec: control "vegas": want nscc, per-mark, constant or rccc`},
		{"transport: {kind: uec, uec: {loss: luck}}", "", `uec: loss "luck": want trim, timeout or gap`},
		{"transport: {kind: dctcp, uec: {loss: gap}}", "", "uec with dctcp: want kind: uec"},
		{"transport: {kind: uec, uec: {headers: 20B}}", "", "uec: headers of 20: want 42 bytes"},
		{"transport: {kind: uec, uec: {oversubscription: 2}}", "", "uec: oversubscription: only receivers that grant credit use it: want control: rccc"},
		{"transport: {kind: uec, uec: {control: rccc, oversubscription: 0.5}}", "", "uec: oversubscription 0.5: want 1 to 90"},
		{"transport: {kind: uec, uec: {control: rccc, oversubscription: .nan}}", "", "oversubscription"},
		{"transport: {kind: uec, paths: 3, entropy: reps}", "", "paths 3: want a power of two"},
		{"transport: {kind: uec}\nswitches: {pfc: true}", "", "uec: loss trim with pfc"},
		{"transport: {kind: uec}", "@tna", "uec: loss trim with ecmp@tna: the traffic manager of Tofino drops whole packets: want loss timeout or gap"},
		{"transport: {kind: uec, uec: {loss: timeout}}\nswitches: {pfc: true}", "", ""},
		{"transport: {kind: uec, uec: {loss: gap, control: constant}}", "@tna", ""},
	} {
		x, err := spec.Load("t.yaml", []byte(strings.Replace(head, "%s", c.arch, 1)+c.text+"\n"), spec.NoFiles, nil)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.want == "" && x.Cases[0].Trims():
			t.Errorf("%s: switches trim", c.text)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s:\n%v\nwant %s", c.text, err, c.want)
		}
	}
}
