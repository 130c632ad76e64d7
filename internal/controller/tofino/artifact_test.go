package tofino

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

const conf = `{"chip_list": [{"id": "asic-0"}], "instance": 0, "p4_devices": [{"device-id": 0, "p4_programs": [{
 "program-name": "drill", "bfrt-config": "bfrt.json",
 "p4_pipelines": [{"p4_pipeline_name": "pipe", "context": "pipe/context.json", "config": "pipe/tofino.bin", "pipe_scope": [0, 1, 2, 3]}]}]}]}`

// TestReadConf: the files of p4c become the configuration of a switch. Its name
// identifies the binary.
func TestReadConf(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "drill.conf")
	put("drill.conf", conf)
	put("bfrt.json", "{}")
	put("pipe/context.json", "context")
	if _, err := ReadConf(file); err == nil || !strings.Contains(err.Error(), "tofino.bin") {
		t.Errorf("without the binary: %v", err)
	}
	var names []string
	for _, binary := range []string{"one", "other", "one"} {
		put("pipe/tofino.bin", binary)
		a, err := ReadConf(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		c := &wire.ForwardingPipelineConfig{}
		if err := proto.Unmarshal(text, c); err != nil {
			t.Fatal(err)
		}
		p := c.GetProfiles()[0]
		if string(p.GetBinary()) != binary || string(p.GetContext()) != "context" || p.GetProfileName() != "pipe" || !slices.Equal(p.GetPipeScope(), []uint32{0, 1, 2, 3}) {
			t.Errorf("the profile is %v", p)
		}
		names = append(names, c.GetP4Name())
	}
	if names[0] == names[1] || names[0] != names[2] || !strings.HasPrefix(names[0], "drill_") {
		t.Errorf("the names are %v", names)
	}
	for text, want := range map[string]string{
		"{":  "reading",
		"{}": "one device of one program",
		`{"p4_devices": [{"p4_programs": [{"program-name": "x"}]}]}`:                                                           "no bfrt-config",
		`{"p4_devices": [{"p4_programs": [{"program-name": "x", "bfrt-config": "bfrt.json"}]}]}`:                               "or no p4_pipelines",
		`{"p4_devices": [{"p4_programs": [{"program-name": "x", "p4_pipelines": [{}]}]}]}`:                                     "no bfrt-config",
		`{"p4_devices": [{"p4_programs": [{"bfrt-config": "bfrt.json", "p4_pipelines": [{}]}]}]}`:                              "no program-name",
		`{"p4_devices": [{"p4_programs": [{"program-name": "x", "bfrt-config": "bfrt.json", "p4_pipelines": [{}]}, {}]}]}`:     "one device of one program",
		`{"p4_devices": [{}, {"p4_programs": [{"program-name": "x", "bfrt-config": "bfrt.json", "p4_pipelines": [{}]}, {}]}]}`: "one device of one program",
	} {
		put("drill.conf", text)
		if _, err := ReadConf(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestNames: a program that a takeover has loaded is known by its name, and the
// next one gets another.
func TestNames(t *testing.T) {
	name := "ecmp_12ab34cd"
	next := nextName(name, nextName(name, name))
	if next != name+"_2" || !isNamed(next, name) || !isNamed(name, name) {
		t.Errorf("after two takeovers it is %s", next)
	}
	for _, other := range []string{"ecmp", "ecmp_12ab34cd_x", "ecmp_12ab34cde", "ecmp_12ab34cd1", "drill_1"} {
		if isNamed(other, name) {
			t.Errorf("%s is taken for %s", other, name)
		}
	}
}
