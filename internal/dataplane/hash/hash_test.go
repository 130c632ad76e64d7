package hash

import (
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// Check values of the CRC catalogue, of xxHash and of RFC 1071.
func TestHashKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		algo, data string
		want       uint64
	}{
		{"crc32", "123456789", 0xcbf43926},
		{"crc32_custom", "123456789", 0xcbf43926},
		{"crc16", "123456789", 0xbb3d},
		{"crc16_custom", "123456789", 0xbb3d},
		{"crcCCITT", "123456789", 0x29b1},
		{"crc8_custom", "123456789", 0xf4},
		{"xxh64", "", 0xef46db3751d8e999},
		{"xxh64", "a", 0xd24ec4f1a98c6e5b},
		{"xxh64", "as", 0x1c330fb2d66be179},
		{"xxh64", "Call me Ishmael. Some years ago--never mind how long precisely-", 0x02a2e85470d6fd96},
		{"csum16", "\x00\x01\xf2\x03\xf4\xf5\xf6\xf7", 0x220d},
		{"csum16", "\x00\x01\xf2\x03\xf4\xf5\xf6\xf7\x10", 0x120d},
		{"csum16", "\x00\x00", 0xffff},
		{"csum16", "\xff\xff\xff\xff", 0},
		{"xor8", "\x12\x34\xff", 0xd9},
		{"xor16", "\x12\x34\xff\x00\x01", 0xec34},
		{"xor32", "\x01\x02\x03\x04\xf0", 0xf1020304},
		{"identity", "\x01\x02\x03", 0x010203},
		{"identity", "\x01\x02\x03\x04\x05\x06\x07\x08\x09", 0x0102030405060708},
		{"toeplitz", "abcd", 0},
	} {
		h, err := New(c.algo)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Sum([]byte(c.data)); got != c.want {
			t.Errorf("%s(%q) = %#x, want %#x", c.algo, c.data, got, c.want)
		}
	}
}

// crc16 processes eight bytes at once, crc16_custom one.
func TestCRC16AgainstBytewise(t *testing.T) {
	custom, _ := New("crc16_custom")
	data := []byte("a text of some length, from which prefixes are taken")
	for n := range data {
		if got, want := crc16(data[:n]), custom.Sum(data[:n]); got != want {
			t.Errorf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

// The Toeplitz hash agrees with the verification vectors of receive-side
// scaling.
func TestToeplitzKnownAnswer(t *testing.T) {
	key := []uint32{0x6d5a56da, 0x255b0ec2, 0x4167253d, 0x43a38fb0, 0xd0ca2bcb, 0xae7b30b4, 0x77cb2da3, 0x8030f20c, 0x6a42b73b, 0xbeac01fa}
	// 66.9.149.187 to 161.142.100.80
	in := []byte{66, 9, 149, 187, 161, 142, 100, 80}
	if got := (&Toeplitz{Key: key}).Sum(in); got != 0x323e8fc2 {
		t.Errorf("got %#x, want 0x323e8fc2", got)
	}
}

func TestRoundRobin(t *testing.T) {
	plain, _ := New("round_robin")
	same, _ := New("round_robin_consistent")
	for i, in := range []string{"a", "b", "a", "c"} {
		if got := plain.Sum([]byte(in)); got != uint64(i) {
			t.Errorf("round_robin, call %d: %d", i, got)
		}
		if got, want := same.Sum([]byte(in)), []uint64{0, 1, 0, 2}[i]; got != want {
			t.Errorf("round_robin_consistent(%s) = %d, want %d", in, got, want)
		}
	}
}

func TestUnknownHashIsRefused(t *testing.T) {
	for _, algo := range []string{"random", "md5", ""} {
		if _, err := New(algo); err == nil {
			t.Errorf("%q was accepted", algo)
		}
	}
}

// Check values of published CRCs over the digits 1 to 9.
func TestCRCOfCalculation(t *testing.T) {
	for _, c := range []struct {
		crc  bmv2.CRC
		want uint64
	}{
		{bmv2.CRC{Width: 8, Poly: "0x07", Init: "0x0", Xor: "0x0"}, 0xf4},
		{bmv2.CRC{Width: 10, Poly: "0x233", Init: "0x0", Xor: "0x0"}, 0x199},
		{bmv2.CRC{Width: 16, Poly: "0x1021", Init: "0xffff", Xor: "0x0"}, 0x29b1},
		{bmv2.CRC{Width: 16, Poly: "0x8005", Init: "0x0", Xor: "0x0", Reversed: true}, 0xbb3d},
		{bmv2.CRC{Width: 32, Poly: "0x04c11db7", Init: "0xffffffff", Xor: "0xffffffff", Reversed: true}, 0xcbf43926},
		{bmv2.CRC{Width: 64, Poly: "0x42f0e1eba9ea3693", Init: "0xffffffffffffffff", Xor: "0xffffffffffffffff", Reversed: true}, 0x995dc9bbdf1939fa},
	} {
		if got := crcOf(&c.crc).Sum([]byte("123456789")); got != c.want {
			t.Errorf("%+v: %#x, want %#x", c.crc, got, c.want)
		}
	}
}
