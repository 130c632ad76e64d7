package hash

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// Hashes of random settings equal those of Tofino's drivers.
func TestSettingsOfTofino(t *testing.T) {
	record, err := os.ReadFile("../../../testdata/oracle/tofino-hash.tsv")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(record)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		f := strings.Split(strings.TrimSpace(line), "\t")
		s, h := &Setting{Function: readFunction(t, f[0])}, &bmv2.Hash{}
		if _, err := fmt.Sscanf(f[1]+" "+f[2], "%d:%d:%d %d", &h.Width, &h.Low, &h.High, &s.Rotate); err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split(f[3], ",") {
			x := Slice{With: -1}
			if n, _ := fmt.Sscanf(text, "%d+%d/%d", &x.At, &x.Width, &x.With); n < 2 {
				t.Fatalf("slice %s", text)
			}
			s.Slices = append(s.Slices, x)
		}
		raw, err := hex.DecodeString(f[4])
		if err != nil {
			t.Fatal(err)
		}
		m := s.Matrix(h)
		if got := strconv.FormatUint(m.Sum(raw), 16); got != f[5] {
			t.Errorf("%s: got %s", strings.TrimSpace(line), got)
		}
		// The hash with another seed differs by that seed.
		own := uint64(0)
		if s.Seed = &own; s.Matrix(h).Sum(raw) != m.Sum(raw)^m.Seed() {
			t.Errorf("%s: with seed 0 %#x, want %#x", strings.TrimSpace(line), s.Matrix(h).Sum(raw), m.Sum(raw)^m.Seed())
		}
	}
	if n < 200 {
		t.Errorf("the record has %d lines", n)
	}
}

func readFunction(t *testing.T, text string) Function {
	t.Helper()
	name, extend := strings.CutSuffix(text, "+")
	f := Function{Extend: extend}
	if c, ok := Named[name]; ok {
		f.Width, f.CRC = c.Width, Reflected(c)
		return f
	}
	var c CRC
	reversed := 0
	switch {
	case strings.HasPrefix(name, "crc:"):
		if _, err := fmt.Sscanf(name, "crc:%d:%x:%x:%x:%d", &c.Width, &c.Poly, &c.Init, &c.XorOut, &reversed); err != nil {
			t.Fatal(err)
		}
		f.Width = c.Width
		f.CRC = crcOf(&bmv2.CRC{Width: c.Width, Poly: fmt.Sprintf("%#x", c.Poly), Init: fmt.Sprintf("%#x", c.Init), Xor: fmt.Sprintf("%#x", c.XorOut), Reversed: reversed == 1})
	case strings.HasPrefix(name, "identity:"):
		f.Copy = true
		fallthrough
	default:
		_, width, _ := strings.Cut(name, ":")
		f.Width, _ = strconv.Atoi(width)
	}
	return f
}

// Check values of the CRCs that Tofino's drivers name.
func TestNamedCRCs(t *testing.T) {
	for name, want := range map[string]uint64{
		"CRC_8": 0xf4, "CRC_8_I_CODE": 0x7e, "CRC_8_ROHC": 0xd0, "CRC_16": 0xbb3d, "CRC_16_DDS_110": 0x9ecf, "CRC_16_DNP": 0xea82,
		"CRC_16_GENIBUS": 0xd64e, "CRC_16_MCRF4XX": 0x6f91, "CRC_16_RIELLO": 0x63d0, "CRC_16_T10_DIF": 0xd0db, "CRC_16_USB": 0xb4c8,
		"X_25": 0x906e, "XMODEM": 0x31c3, "MODBUS": 0x4b37, "KERMIT": 0x2189, "CRC_CCITT_FALSE": 0x29b1, "CRC_AUG_CCITT": 0xe5cc,
		"CRC_32": 0xcbf43926, "CRC_32_BZIP2": 0xfc891918, "CRC_32C": 0xe3069283, "CRC_32_MPEG": 0x0376e6e7, "POSIX": 0x765e7680, "JAMCRC": 0x340bc6d9,
		"CRC_64": 0x6c40df5f0b497347, "CRC_64_WE": 0x62ec59e3f1a4f00a, "CRC_64_GO_ISO": 0xb90956c775a41001,
	} {
		c, ok := Named[name]
		if got := Reflected(c).Sum([]byte("123456789")); !ok || got != want {
			t.Errorf("%s: %#x, want %#x", name, got, want)
		}
	}
}
