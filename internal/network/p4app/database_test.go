package p4app

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestDatabase compares what the older p4-utils reads from the file, recorded in
// testdata/oracle/p4-utils-db.tsv, with the topology.
func TestDatabase(t *testing.T) {
	load := func(text string) *fabric.Topology {
		t.Helper()
		top, err := fabric.Load("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return top
	}
	top := load(square)
	text, err := Database(top, map[string]int{"l1": 255, "l2": 255, "s1": 254, "s2": 255})
	if err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv("P4LB_DATABASE"); file != "" { // to record
		if err := os.WriteFile(file, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	answers := oracleAnswers(t, "p4-utils-db.tsv")
	if got := fmt.Sprintf("%x", sha256.Sum256(text)); answers["sha256"] != got {
		t.Errorf("p4-utils' answers are for another file: record them with testdata/oracle/p4-utils-db.py; %s", got)
	}
	for query, want := range map[string]string{
		"switches": "l1 l2 s1 s2", "hosts": "h1 h2", "id s2": fmt.Sprint(top.Switch("s2").ID), "thrift l1": "127.0.0.1 9090", "cpu s1": "254",
		"ip h2": "10.0.2.7", "mac h1": top.Host("h1").MAC.String(), "name 10.0.1.1": "h1", "gateway h1": "l1",
		"port l1 h1": "3", "port l2 s2": "9", "port s2 l2": "2", "mac l2 s2": portMAC(top, "l2", 9), "bw l1 s2": "50", "bw l1 s1": "400",
		"hosts of l2": "h2", "switches of l2": "s1 s2", "paths h1 h2": "h1-l1-s1-l2-h2 h1-l1-s2-l2-h2", "subnet h2 l2": "10.0.2.0/25",
	} {
		if answers[query] != want {
			t.Errorf("%s: p4-utils reads %q, want %q", query, answers[query], want)
		}
	}
	double := load(strings.Replace(square, "ends: [l1, s1]", "ends: [l1, s1], parallel: 2", 1))
	if _, err := Database(double, nil); err == nil || err.Error() != "l1 and s1 have several links: topology.db has one for each pair of nodes" {
		t.Error(err)
	}
	top.Switch("l2").Thrift = ""
	if _, err := Database(top, nil); err == nil || err.Error() != `switch l2: thrift "": topology.db is for controllers over Thrift: want thrift: 127.0.0.1:9090` {
		t.Error(err)
	}
}
