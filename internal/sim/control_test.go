package sim

import (
	"encoding/hex"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// Probes have the layouts of the generated programs (docs/formats.md, fields in their
// order). A frame that ends before the last field is none, whatever it begins with.
func TestProbes(t *testing.T) {
	const ethernet = "ffffffffffff020000000001"
	for _, test := range []struct {
		name             string
		degree, hardware bool
		frame            string
		body             int // bytes after the Ethernet header
		want             control
	}{
		{"DHLB, software", true, false, "88b6" + "05" + "1234" + "07" + "02", 5, control{form: probeForm, probe: model.Probe{Origin: 5, Seq: 0x1234, Degree: 7, Hop: 2}}},
		{"HULA, software", false, false, "88b6" + "0105" + "00010203", 6, control{form: probeForm, probe: model.Probe{Origin: 0x105, Util: 0x10203}}},
		{"DHLB, hardware", true, true, "88b6" + "0005" + "1234" + "00000007" + "02", 9, control{form: probeForm, probe: model.Probe{Origin: 5, Degree: 7, Hop: 2}}},
		{"HULA, hardware", false, true, "88b6" + "0105" + "0203", 4, control{form: probeForm, probe: model.Probe{Origin: 0x105, Util: 0x203}}},
		{"path, software", false, false, "88b7" + "123" + "456" + "3" + "1" + "000000000000", 10, control{form: pathForm, path: pathProbe{src: 0x123, dst: 0x456, path: 3, flags: 1}}},
		{"path, hardware", false, true, "88b7" + "0123" + "0456" + "03" + "01" + "00000000", 10, control{form: pathForm, path: pathProbe{src: 0x123, dst: 0x456, path: 3, flags: 1}}},
	} {
		frame, err := hex.DecodeString(ethernet + test.frame)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := readControl(frame, test.degree, test.hardware); !ok || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", test.name, got, ok, test.want)
		}
		if got, ok := readControl(append(frame, 0xFF), test.degree, test.hardware); !ok || got != test.want {
			t.Errorf("%s, with padding: %+v, %v", test.name, got, ok)
		}
		for n := range ethernetLen + test.body {
			if got, ok := readControl(frame[:n], test.degree, test.hardware); ok {
				t.Errorf("%s: %d of %d bytes are a probe: %+v", test.name, n, len(frame), got)
			}
		}
	}
	// A frame with another EtherType is no probe.
	frame, _ := hex.DecodeString(ethernet + "0800" + "450000000000000000000000")
	if _, ok := readControl(frame, true, false); ok {
		t.Error("IPv4 is taken for a probe")
	}
}
