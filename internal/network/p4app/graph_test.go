package p4app

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// square is a network with addresses, queues and a host with another prefix.
const square = `name: square
defaults: {switch-links: {rate: 400Mbps, delay: 10us, queue: 64}, host-links: {rate: 100Mbps}}
switches: {l1: {id: 0, grpc: "127.0.0.1:50051", thrift: "127.0.0.1:9090"}, l2: {}, s1: {}, s2: {}}
hosts: {h1: {ip: 10.0.1.1/24}, h2: {ip: 10.0.2.7/25}}
links:
- {ends: [h1, "l1:3"]}
- {ends: [h2, l2]}
- {ends: [l1, s1]}
- {ends: [l1, s2], rate: 50Mbps}
- {ends: [l2, s1]}
- {ends: [s2, "l2:9"]}
`

// oracleAnswers returns the recorded answers of a file by query.
func oracleAnswers(t *testing.T, file string) map[string]string {
	t.Helper()
	recorded, err := os.ReadFile("../../../testdata/oracle/" + file)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for line := range strings.Lines(string(recorded)) {
		if query, answer, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok && line[0] != '#' {
			answers[query] = answer
		}
	}
	return answers
}

func portMAC(top *fabric.Topology, sw string, port int) string {
	for _, p := range top.Ports(sw) {
		if p.Number == port {
			return p.MAC.String()
		}
	}
	return ""
}

// TestGraph compares what p4-utils reads from the file, recorded in
// testdata/oracle/p4-utils.tsv, with the topology.
func TestGraph(t *testing.T) {
	top, err := fabric.Load("t.yaml", []byte(square))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Graph(top, map[string]int{"l1": 255, "l2": 255, "s1": 254, "s2": 255})
	if err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv("P4LB_GRAPH"); file != "" { // to record
		if err := os.WriteFile(file, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	answers := oracleAnswers(t, "p4-utils.tsv")
	if got := fmt.Sprintf("%x", sha256.Sum256(text)); answers["sha256"] != got {
		t.Errorf("p4-utils' answers are for another file: record them with testdata/oracle/p4-utils.py; %s", got)
	}
	for query, want := range map[string]string{
		"switches": "l1 l2 s1 s2", "hosts": "h1 h2", "id l1": "0", "id s2": fmt.Sprint(top.Switch("s2").ID),
		"grpc l1": "50051", "thrift l1": "9090", "grpc s2": strings.TrimPrefix(top.Switch("s2").GRPC, "127.0.0.1:"),
		"cpu s1": "254", "ip h2": "10.0.2.7", "mac h1": top.Host("h1").MAC.String(), "name 10.0.1.1": "h1", "gateway h1": "l1",
		"port l1 h1": "3", "port l2 s2": "9", "port s2 l2": "2", "mac l2 s2": portMAC(top, "l2", 9), "bw l1 s2": "50", "bw l1 s1": "400",
		"neighbour l2 9": "s2", "hosts of l2": "h2", "paths h1 h2": "h1-l1-s1-l2-h2 h1-l1-s2-l2-h2", "subnet l2 h2": "10.0.2.0/25",
	} {
		if answers[query] != want {
			t.Errorf("%s: p4-utils reads %q, want %q", query, answers[query], want)
		}
	}
	double, err := fabric.Load("t.yaml", []byte(strings.Replace(square, "ends: [l1, s1]", "ends: [l1, s1], parallel: 2", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Graph(double, nil); err == nil || !strings.Contains(err.Error(), "l1 and s1 have several links") {
		t.Error(err)
	}
}
