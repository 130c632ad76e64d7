package own

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// FromCatalogue returns the programs of a scheme of the catalogue for some roles of
// switches, as the start of a user's scheme.
func FromCatalogue(from scheme.Scheme, name string, p codegen.Params, roles ...string) ([]File, error) {
	files, err := Scaffold(name) // checks the name, and has the experiment
	if err != nil {
		return nil, err
	}
	row := from.Name()
	var list []File
	for _, role := range roles {
		p.Role = role
		program, err := from.Build(p)
		if err != nil {
			return nil, err
		}
		source, err := program.Text()
		if err != nil {
			return nil, err
		}
		base := name + "-" + role
		m := program.Manifest
		m.Scheme = name
		m.Parameters = nil // The constants that the program has now.
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encoding the manifest: %w", err)
		}
		list = append(list,
			File{Name: base + ".p4", Text: ownHeader(source, row, name), About: "the program of " + role + " switches"},
			File{Name: base + ".manifest.json", Text: append(text, '\n'), About: "its manifest"})
		// A program that looks up its ports uses more table entries than the packet
		// test has.
		perPort := slices.ContainsFunc(m.Tables, func(t manifest.Table) bool { return t.Name == "LbEgress.port_cfg" })
		if role == "leaf" && !perPort {
			list = append(list, File{Name: base + ".stf", Text: []byte(fromTest), About: "a packet test for p4lb test"})
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

// fromTest is a packet test: it sends a packet to a host. All programs of leaves
// forward it the same way. The scaffold's own test has the same frames.
const fromTest = `# To a host behind port 1: the frame gets the MACs for the next hop, and a TTL of one less.
add LbIngress.ipv4_route hdr.ipv4.dst:0x0A000101 LbIngress.forward(port:1, dmac:0x020000000001, smac:0x0600000000F1)
packet 2 0600000000F2 0600000000A1 0800 4500002000014000401123CB0A0002010A000101 03E807D0000C0000 70696E67
expect 1 020000000001 0600000000F1 0800 45000020000140003F1124CB0A0002010A000101 03E807D0000C0000 70696E67$
`
