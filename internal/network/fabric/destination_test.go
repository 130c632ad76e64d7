package fabric

import (
	"fmt"
	"slices"
	"testing"
)

// TestDestinations: destinations are the subnets of the leaves, and single
// addresses for a subnet at several leaves, regardless of failed links.
func TestDestinations(t *testing.T) {
	topology, err := Load("test.yaml", []byte(`
switches: {l1: {role: leaf}, l2: {role: leaf}, s1: {role: spine}}
hosts:
  h1: {ip: 10.0.1.1/24}
  h2: {ip: 10.0.1.2/24}
  h3: {ip: 10.0.3.1/24}
  h4: {ip: 10.0.3.2/24}
links:
  - {ends: [h1, l1], rate: 1G}
  - {ends: [h2, l1], rate: 1G}
  - {ends: [h3, l1], rate: 1G}
  - {ends: [h4, l2], rate: 1G}
  - {ends: [l1, s1], rate: 1G}
  - {ends: [l2, s1], rate: 1G, down: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range topology.Destinations() {
		got = append(got, fmt.Sprintf("%v %d", d.Prefix, d.Leaf))
	}
	want := []string{"10.0.1.0/24 1", "10.0.3.1/32 1", "10.0.3.2/32 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
