package p4rt

import (
	"bytes"
	"math/big"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// TestValidBytestrings is the table "Examples of Valid Bytestring Encoding" of
// the P4Runtime specification 1.5.
func TestValidBytestrings(t *testing.T) {
	for _, c := range []struct {
		signed    bool
		width     int
		value     int64
		encoded   string
		symmetric bool
	}{
		{false, 8, 99, "\x63", true},
		{false, 16, 99, "\x00\x63", false},
		{false, 16, 99, "\x63", true},
		{false, 16, 12388, "\x30\x64", true},
		{false, 16, 12388, "\x00\x30\x64", false},
		{false, 12, 99, "\x00\x63", false},
		{false, 12, 99, "\x63", true},
		{false, 12, 99, "\x00\x00\x63", false},
		{true, 8, 99, "\x63", true},
		{true, 8, -99, "\x9d", true},
		{true, 8, -99, "\xff\x9d", false},
		{true, 12, -739, "\xfd\x1d", true},
		{true, 16, 0, "\x00\x00", false},
		{true, 16, 0, "\x00", true},
		// Not an example of the table: the zero of the unsigned types.
		{false, 16, 0, "\x00", true},
	} {
		parse, format := unsigned, num.Shortest
		if c.signed {
			parse, format = signed, num.ShortestSigned
		}
		got, err := parse([]byte(c.encoded), c.width)
		if err != nil {
			t.Errorf("%q as %d bits: %v", c.encoded, c.width, err)
			continue
		}
		want := format([]uint64{uint64(c.value)}, c.width)
		if !bytes.Equal(got, want) {
			t.Errorf("%q as %d bits is %x, want %x", c.encoded, c.width, got, want)
		}
		if symmetric := string(want) == c.encoded; symmetric != c.symmetric {
			t.Errorf("%d as %d bits is %x: symmetric with %q is %v, want %v", c.value, c.width, want, c.encoded, symmetric, c.symmetric)
		}
	}
}

// TestInvalidBytestrings is the table "Examples of Invalid Bytestring
// Encoding".
func TestInvalidBytestrings(t *testing.T) {
	for _, c := range []struct {
		signed  bool
		width   int
		encoded string
	}{
		{false, 8, "\x01\x63"},
		{false, 8, ""},
		{false, 16, "\x01\x00\x63"},
		{false, 12, "\x10\x63"},
		{false, 12, "\x01\x00\x63"},
		{false, 12, "\x00\x40\x63"},
		{true, 8, "\x00\x9d"},
		{true, 12, "\x8d\x1d"},
		{true, 16, ""},
	} {
		parse := unsigned
		if c.signed {
			parse = signed
		}
		if got, err := parse([]byte(c.encoded), c.width); codeOf(err) != codes.OutOfRange {
			t.Errorf("%q as %d bits: got %x, %v, want OUT_OF_RANGE", c.encoded, c.width, got, err)
		}
	}
}

// FuzzBytestring compares the codec with arbitrary precision arithmetic.
func FuzzBytestring(f *testing.F) {
	for _, s := range []string{"", "\x00", "\x00\x00", "\x63", "\xff\x9d", "\x80", "\x01\x00\x00\x00\x00\x00\x00\x00\x00"} {
		f.Add([]byte(s), 8)
		f.Add([]byte(s), 12)
		f.Add([]byte(s), 128)
	}
	f.Fuzz(func(t *testing.T, b []byte, width int) {
		if width <= 0 || width > 512 {
			return
		}
		checkUnsigned(t, b, width)
		checkSigned(t, b, width)
	})
}

func checkUnsigned(t *testing.T, b []byte, width int) {
	v := new(big.Int).SetBytes(b)
	got, err := unsigned(b, width)
	if ok := len(b) > 0 && v.BitLen() <= width; ok != (err == nil) {
		t.Fatalf("unsigned(%x, %d): error %v, want it accepted: %v", b, width, err, ok)
	}
	if err != nil {
		if got != nil {
			t.Fatalf("unsigned(%x, %d): %x beside an error", b, width, got)
		}
		return
	}
	n := (width + 63) / 64
	if w := num.Shortest(num.OfBytes(b, n), width); !bytes.Equal(w, got) {
		t.Fatalf("unsigned(%x, %d) = %x, through words %x", b, width, got, w)
	}
	if again, err := unsigned(got, width); err != nil || !bytes.Equal(again, got) {
		t.Fatalf("unsigned(%x, %d) is not canonical: %x, %v", b, width, again, err)
	}
	if new(big.Int).SetBytes(got).Cmp(v) != 0 || len(got) > 1 && got[0] == 0 {
		t.Fatalf("unsigned(%x, %d) = %x", b, width, got)
	}
}

// signedValue reads two's complement.
func signedValue(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

func checkSigned(t *testing.T, b []byte, width int) {
	v := signedValue(b)
	limit := new(big.Int).Lsh(big.NewInt(1), uint(width-1))
	fits := v.Cmp(limit) < 0 && v.Cmp(new(big.Int).Neg(limit)) >= 0
	got, err := signed(b, width)
	if ok := len(b) > 0 && fits; ok != (err == nil) {
		t.Fatalf("signed(%x, %d): error %v, want it accepted: %v", b, width, err, ok)
	}
	if err != nil {
		return
	}
	if signedValue(got).Cmp(v) != 0 {
		t.Fatalf("signed(%x, %d) = %x", b, width, got)
	}
	n := (width + 63) / 64
	if w := num.ShortestSigned(signedWords(got, n, width), width); !bytes.Equal(w, got) {
		t.Fatalf("signed(%x, %d) = %x, through words %x", b, width, got, w)
	}
}

func TestBits(t *testing.T) {
	for _, c := range []struct {
		b          string
		n          int
		zeros, all bool
	}{
		{"\x00", 8, true, false},
		{"\x80", 7, true, false},
		{"\x80", 8, false, false},
		{"\x01\x00", 8, true, false},
		{"\x01\x80", 8, false, false},
		{"\xff", 8, false, true},
		{"\x01\xff", 9, false, true},
		{"\x7f", 8, false, false},
		{"\xff\xff", 16, false, true},
	} {
		if got := num.TrailingZeros([]byte(c.b), c.n); got != c.zeros {
			t.Errorf("trailingZeros(%x, %d) = %v", c.b, c.n, got)
		}
		if got := num.AllOnes([]byte(c.b), c.n); got != c.all {
			t.Errorf("allOnes(%x, %d) = %v", c.b, c.n, got)
		}
	}
}
