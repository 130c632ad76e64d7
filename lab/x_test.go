package lab

import (
	"fmt"
	"testing"
)

func TestX(t *testing.T) {
	good := `
name: a
topology: qall
schemes: [ecmp, {scheme: drill, set: {d: 2}}]
loads: [0.5, 70%]
seeds: 3
duration: 200ms
warmup: 5%
traffic:
  - workload: websearch
    pattern: halves
transport: dctcp
classes:
  - {name: a, upto: 100KB}
  - {name: b}
faults:
  - {at: 10ms, until: 50ms, link: l1-s1, down: true}
cases:
  - {name: x, topology: qall-asym}
  - {name: y, topology: {leaf-spine: {leaves: 2, spines: 3, rate: 10G}}}
`
	x, err := Load("a.yaml", []byte(good), nil)
	fmt.Printf("%+v %v\n", x, err)
	for _, bad := range []string{"name: a\nschems: [ecmp]\n", "schemes: [ecmp]\nloads: [0.5, 1.2]\n", "schemes: [ecmp]\nloads:\n - 0.5\n - 1.2\n", "schemes: [ecmp]\ntraffic:\n - workload: websearch\n   patern: x\n",
		"schemes: [ecmp]\ntraffic:\n - workload: websearch\n   pattern: x\n", "schemes:\n - ecmp\n - foo\n", "schemes: [ecmp]\nduration: 3\n", "schemes: [ecmp]\ntopology: rlb-pfc\n", "schemes: [ecmp\n", "schemes: [ecmp]\ncases:\n - name: x\n   topology: nonet\n", "schemes: [{scheme: drill, set: {q: 2}}]", "schemes: [ecmp]\nfaults:\n  - at: 1s\n    until: 2s\n    down: true\n    link: l9-s1\n", "schemes: [{scheme: drill,\n set: {d: 2000}}]", "schemes: [ecmp]\nseeds: many"} {
		_, err := Load("a.yaml", []byte(bad), nil)
		fmt.Println(err)
	}
}
