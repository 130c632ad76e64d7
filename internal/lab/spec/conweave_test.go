package spec

import (
	"fmt"
	"strings"
	"testing"
)

// TestModelOnly runs a scheme without a program by its model, unless its row asks for one.
func TestModelOnly(t *testing.T) {
	x, err := Load("x.yaml", []byte("schemes: [ecmp, conweave]\nengine: p4\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []string{EngineP4, EngineNative, EngineP4} {
		if x.Schemes[1].Engine != EngineNative {
			t.Errorf("conweave runs with the engine %s", x.Schemes[1].Engine)
		}
		if err := x.Adjust(engine, nil); err != nil || x.Schemes[0].Engine != engine {
			t.Errorf("ecmp runs with the engine %s, want %s: %v", x.Schemes[0].Engine, engine, err)
		}
	}
	for text, want := range map[string]string{
		"schemes: [{scheme: conweave, engine: p4}]":        "x.yaml:1: schemes[0].engine: conweave has no P4 program: want native",
		"schemes: [conweave@tna]":                          "no P4 program",
		"schemes: [{scheme: conweave, set: {gap: 100us}}]": "no such parameter",
	} {
		if _, err := Load("x.yaml", []byte(text), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestBTH takes the headers of RoCE where they have room.
func TestBTH(t *testing.T) {
	const text = "schemes: [ecmp]\nlike: %s\ntransport: {kind: dcqcn, rdma: {bth: true}}\n"
	x, err := Load("x.yaml", fmt.Appendf(nil, text, "hardware"), nil, nil)
	if err != nil || !x.Cases[0].Transport.Tuning().RDMA.BTH {
		t.Errorf("with like: hardware: %v", err)
	}
	if _, err := Load("x.yaml", fmt.Appendf(nil, text, "ns3"), nil, nil); err == nil || !strings.Contains(err.Error(), "bth with headers of 48 bytes and answers of 60: want 58 and 62 at least") {
		t.Errorf("with like: ns3: %v", err)
	}
}

// A Nack repeats all packets in flight only with both nack: selective and repeat: all.
func TestRepeat(t *testing.T) {
	for text, want := range map[string]bool{
		"{nack: selective, repeat: all}": true, "{nack: selective, repeat: missing}": false, "{nack: selective}": false, "{nack: any, repeat: all}": false, "{repeat: all}": false,
	} {
		x, err := Load("x.yaml", []byte("schemes: [ecmp]\ntransport: {kind: dcqcn, rdma: "+text+"}\n"), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := x.Cases[0].Transport.Tuning().RDMA.RepeatAll; got != want {
			t.Errorf("%s: repeats all: %v", text, got)
		}
	}
}
