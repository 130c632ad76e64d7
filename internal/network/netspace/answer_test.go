package netspace

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestAnswer checks responses to ARP (RFC 826) and neighbour solicitations (RFC
// 4861). The checksums of the frames are computed by hand.
func TestAnswer(t *testing.T) {
	mac := fabric.MAC{2, 0, 0, 0, 1, 0}
	addresses := map[netip.Addr]fabric.MAC{
		netip.MustParseAddr("10.0.1.200"):      mac,
		netip.MustParseAddr("2001:db8:1::100"): mac,
	}
	const (
		arp = "ffffffffffff 02000a000101 0806 0001 0800 06 04 0001 02000a000101 0a000101 000000000000 "
		six = "3333ff000100 02000a000101 86dd 60000000 0020 3a ff " +
			"20010db8000100000000000000000001 ff0200000000000000000001ff000100 "
		solicit = "87 00 0000 00000000 20010db8000100000000000000000100 01 01 02000a000101"
	)
	for _, c := range []struct{ name, frame, want string }{
		{"ARP", arp + "0a0001c8",
			"02000a000101 020000000100 0806 0001 0800 06 04 0002 020000000100 0a0001c8 02000a000101 0a000101"},
		{"ARP for a host", arp + "0a000102", ""},
		{"an ARP reply", strings.Replace(arp, "04 0001", "04 0002", 1) + "0a0001c8", ""},
		{"a short frame", "ffffffffffff 02000a000101 0806 0001", ""},
		{"a solicitation", six + solicit,
			"02000a000101 020000000100 86dd 60000000 0020 3a ff 20010db8000100000000000000000100 20010db8000100000000000000000001 " +
				"88 00 CHECK 60000000 20010db8000100000000000000000100 02 01 020000000100"},
		{"a solicitation from another network", strings.Replace(six, "3a ff", "3a fe", 1) + solicit, ""},
		{"a search for duplicates", strings.Replace(six, "20010db8000100000000000000000001", strings.Repeat("0", 32), 1) + solicit, ""},
		{"an echo request", six + strings.Replace(solicit, "87", "80", 1), ""},
	} {
		// Pseudo header: 2001+0db8+0001+0100 + 2001+0db8+0001+0001 + 0020+003a = 5ccf;
		// message: 8800+6000+2001+0db8+0001+0100 + 0201+0200+0000+0100 = 11bbb;
		// the sum 1788a is 788b with its carry, and the complement of that 8774.
		want := unhex(t, strings.Replace(c.want, "CHECK", "8774", 1))
		if got := answerTo(unhex(t, c.frame), addresses); !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", c.name, got, want)
		}
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
