package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/scheme/own"
)

// fromNames are short names for rows of the catalogue to start from.
var fromNames = map[string]string{"qall": "qall-poly3"}

// pathsFrom is the size of the largest group of paths of a program that new
// --from copies.
const pathsFrom = 16

// scaffoldFrom returns the programs of a row of the catalogue, for leaves and
// spines, as the start of a scheme.
func scaffoldFrom(l *scheme.Library, from, name string) ([]own.File, error) {
	files, err := own.Scaffold(name) // checks the name, and has the experiment
	if err != nil {
		return nil, err
	}
	row := from
	if long := fromNames[from]; long != "" {
		row = long
	}
	s, err := l.Find(row)
	if err != nil {
		return nil, err
	}
	var list []own.File
	for _, role := range []fabric.Role{fabric.Leaf, fabric.Spine} {
		p, err := s.Build(codegen.Params{Role: string(role), Ports: pathsFrom, MaxPort: 64})
		if err != nil {
			return nil, err
		}
		source, err := p.Text()
		if err != nil {
			return nil, err
		}
		base := name + "-" + string(role)
		p.Manifest.Scheme = name
		p.Manifest.Parameters = nil // constants of the program now
		text, err := json.MarshalIndent(p.Manifest, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encoding the manifest: %w", err)
		}
		list = append(list,
			own.File{Name: base + ".p4", Text: ownHeader(source, row, name), About: "the program of " + string(role) + " switches"},
			own.File{Name: base + ".manifest.json", Text: append(text, '\n'), About: "its meaning for p4lb"})
		// A program that looks up its ports wants more entries than the test has.
		perPort := slices.ContainsFunc(p.Manifest.Tables, func(t manifest.Table) bool { return t.Name == "LbEgress.port_cfg" })
		if role == fabric.Leaf && !perPort {
			list = append(list, own.File{Name: base + ".stf", Text: []byte(fromTest), About: "a packet test for p4lb test"})
		}
	}
	for _, f := range files {
		if f.Name == "experiment.yaml" {
			f.Text = []byte(strings.NewReplacer("- drill\n", "- "+row+"\n", "parameters: advised     # what p4lb advise computes for this network\n", "", "hashing and queue lengths", "hashing and "+row).Replace(string(f.Text)))
			list = append(list, f)
		}
	}
	return list, nil
}

// ownHeader adds a line about its origin to a generated program, after its first
// line, the license.
func ownHeader(source []byte, row, name string) []byte {
	license, rest, _ := bytes.Cut(source, []byte("\n"))
	line := "\n// " + name + " starts from the program of " + row + " that p4lb generates.\n"
	return slices.Concat(license, []byte(line), rest)
}

// fromTest sends a packet to a host, which all programs of leaves forward the same
// way. The frames are those of the scaffold's own test.
const fromTest = `# To a host behind port 1: the MACs are those of the next hop, the TTL is one less.
add LbIngress.ipv4_route hdr.ipv4.dst:0x0A000101 LbIngress.forward(port:1, dmac:0x020000000001, smac:0x0600000000F1)
packet 2 0600000000F2 0600000000A1 0800 4500002000014000401123CB0A0002010A000101 03E807D0000C0000 70696E67
expect 1 020000000001 0600000000F1 0800 45000020000140003F1124CB0A0002010A000101 03E807D0000C0000 70696E67$
`
