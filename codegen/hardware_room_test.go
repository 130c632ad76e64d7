package codegen

import (
	"strings"
	"testing"
)

// TestRooms: p4lb generates a row up to the number of paths that fits its architecture,
// and refuses more with an alternative.
func TestRooms(t *testing.T) {
	for arch, rows := range Standard().rooms {
		for name, room := range rows {
			row, err := Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			if room.Paths > 0 {
				if _, err := Generate(row, Params{Arch: arch, Ports: room.Paths}); err != nil {
					t.Errorf("%s for %s with %d paths: %v", name, arch, room.Paths, err)
				}
			}
			_, err = Generate(row, Params{Arch: arch, Ports: max(room.Paths*2, 4)})
			if err == nil || !strings.Contains(err.Error(), name+" does not fit "+arch) || !strings.Contains(err.Error(), "not enough "+room.Lacks) {
				t.Errorf("%s for %s with more than %d paths: %v", name, arch, room.Paths, err)
			}
			nearest, _, _ := strings.Cut(room.Nearest, ", or t2na")
			if room.Paths > 0 || nearest == "" {
				continue
			}
			if near, err := Lookup(nearest); err != nil {
				t.Errorf("%s for %s: %v", name, arch, err)
			} else if _, err := Generate(near, Params{Arch: arch}); err != nil {
				t.Errorf("%s for %s: the nearest: %v", name, arch, err)
			}
			if _, err := Generate(row, Params{Arch: "t2na"}); strings.HasSuffix(room.Nearest, "t2na") && err != nil {
				t.Errorf("%s for t2na instead: %v", name, err)
			}
		}
	}
}

// TestGhost: with the ghost thread no reports are needed, and signals that it cannot
// provide are refused.
func TestGhost(t *testing.T) {
	for _, name := range []string{"drill", "qdaps"} {
		row, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Generate(row, Params{Arch: "t2na", StatePath: "ghost"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(p.P4, "LbGhost()) pipe") || strings.Contains(p.P4, "Mirror(") || len(p.Manifest.CloneSessions) > 0 {
			t.Errorf("%s still has reports", name)
		}
	}
	for _, c := range []struct{ name, arch, want string }{
		{"drill", "tna", "the ghost thread is Tofino 2's"},
		{"drill", "v1model", "the ghost thread is Tofino 2's"},
		{"conga", "t2na", "it only provides queue lengths"},
		{"drill+rlb", "t2na", "it only provides queue lengths"},
	} {
		row, err := Lookup(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Generate(row, Params{Arch: c.arch, StatePath: "ghost"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %q", c.name, c.arch, err, c.want)
		}
	}
}
