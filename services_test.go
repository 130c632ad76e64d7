package p4lb_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb"
)

// pool is a network with a service. The traffic to it outlasts a change of the pool.
var pool = fstest.MapFS{"net.yaml": {Data: []byte(`
name: pool
defaults: {switch-links: {rate: 1G}, host-links: {rate: 100Mbps}}
switches: {l1: {}, l2: {}, s1: {}}
hosts: {h1: , h2: , h3: , h4: , h5: , h6: }
links: [{ends: [h1, l1]}, {ends: [h2, l1]}, {ends: [h3, l1]}, {ends: [h4, l2]}, {ends: [h5, l2]}, {ends: [h6, l2]}, {ends: [l1, s1]}, {ends: [l2, s1]}]
services: {web: {address: 10.0.2.100, port: 80, servers: [h4, h5, h6]}}
`)}}

const toPool = `
topology: net.yaml
schemes: [./connections]
traffic: [{size: 500KB, from: [l1], to: [web], load-of: hosts}]
loads: [0.8]
seeds: 3
duration: 200ms
drain: 3s
faults: [{at: 100ms, server: h6, down: true}]
`

// A connection table: the program reports each new connection to a virtual address by a
// digest, and the controller pins it to its server. Connections thus survive when their server leaves
// the pool, or another one.
func ExampleNetwork_OnDigest() {
	unfinished := func(pins bool) float64 {
		r, err := p4lb.Experiment{Text: toPool, Files: pool, Schemes: "testdata", Begin: func(n *p4lb.Network) error {
			leaf, err := n.Switch("l1")
			if err != nil {
				return err
			}
			if !pins {
				return nil
			}
			address := func(b []byte) string { return netip.AddrFrom4([4]byte(b)).String() }
			port := func(b []byte) string { return fmt.Sprint(binary.BigEndian.Uint16(b)) }
			return n.OnDigest("l1", func(d p4lb.Digest) {
				err := leaf.Insert(p4lb.Entry{
					Table: "connections", Match: map[string]string{
						"h.ip.src": address(d.Data), "h.l4.sport": port(d.Data[4:]), "h.ip.dst": address(d.Data[6:]), "h.l4.dport": port(d.Data[10:]),
					},
					Action: "server", Args: map[string]string{"ip": address(d.Data[12:])},
				})
				if err != nil {
					log.Fatal(err)
				}
			})
		}}.Run(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		e, _ := r.Rows()[0].Estimate("unfinished")
		return e.Mean
	}
	fmt.Println("connections break without the table:", unfinished(false) > 0)
	fmt.Println("connections break with it:", unfinished(true) > 0)
	// Output:
	// connections break without the table: true
	// connections break with it: false
}

// TestOnDigestErrors names switches that are missing or run models.
func TestOnDigestErrors(t *testing.T) {
	for engine, want := range map[string]string{"p4": `there is no switch "l9"`, "native": "run models"} {
		_, err := p4lb.Experiment{Text: small("ecmp") + "engine: " + engine + "\n", Begin: func(n *p4lb.Network) error {
			name := "l1"
			if engine == "p4" {
				name = "l9"
			}
			return n.OnDigest(name, func(p4lb.Digest) {})
		}}.Run(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", engine, err, want)
		}
	}
}
