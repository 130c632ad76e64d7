package fabric

import (
	"testing"
	"time"
)

func TestParseUnits(t *testing.T) {
	for text, want := range map[string]Rate{
		"400Mbps": 400e6, "40G": 40e9, "2.5Gbps": 2.5e9, "1 Gbps": 1e9, "9kbps": 9e3, "1bps": 1, "1T": 1e12, "0.5k": 500,
		"": 0, "0": 0, "0Gbps": 0, "40": 0, "-1G": 0, "1e9bps": 0, "1.5bps": 0, "1/2G": 0, "G": 0, "1GB": 0, "99999999999G": 0,
		"1..5G": 0, ".G": 0, "1g": 0, "1_000k": 0,
	} {
		got, err := ParseRate(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("rate %q: %v (%v), want %v", text, int64(got), err, int64(want))
		}
	}
	for text, want := range map[string]Size{"64KB": 64e3, "64KiB": 65536, "9MB": 9e6, "9MiB": 9 << 20, "1.5KiB": 1536, "0B": 0, "2GiB": 2 << 30, "9": -1, "9Mb": -1, "-1B": -1} {
		got, err := ParseSize(text)
		if (err == nil) != (want >= 0) || err == nil && got != want {
			t.Errorf("size %q: %v (%v), want %v", text, int64(got), err, int64(want))
		}
	}
	for text, want := range map[string]time.Duration{"2us": 2000, "12.5us": 12500, "1µs": 1000, "1ms": 1e6, "10s": 10e9, "0": 0, "0s": 0, "7ns": 7, "11s": -1, "1h": -1, "2": -1, "-1us": -1, "0.5ns": -1} {
		got, err := ParseDelay(text)
		if (err == nil) != (want >= 0) || err == nil && got != want {
			t.Errorf("time %q: %v (%v), want %v", text, got, err, want)
		}
	}
}

// TestUnitsRoundTrip: formatted values parse to the same value.
func TestUnitsRoundTrip(t *testing.T) {
	for _, want := range []int64{1, 7, 999, 1000, 1001, 1024, 1500, 12500, 1e6, 65536, 123456789, 2.5e9, 9 << 20, 1<<40 + 1} {
		if got, err := ParseRate(Rate(want).String()); int64(got) != want {
			t.Errorf("%d bit/s is written %v and read as %d (%v)", want, Rate(want), got, err)
		}
		if got, err := ParseSize(Size(want).String()); int64(got) != want {
			t.Errorf("%d bytes are written %v and read as %d (%v)", want, Size(want), got, err)
		}
		if d := time.Duration(want); d <= maxDelay {
			if got, err := ParseDelay(FormatDelay(d)); got != d {
				t.Errorf("%v is written %s and read as %v (%v)", d, FormatDelay(d), got, err)
			}
		}
	}
	for got, want := range map[string]string{
		(400 * Mbps).String(): "400Mbps", Rate(2.5e9).String(): "2.5Gbps", Rate(0).String(): "0bps",
		(9 * MB).String(): "9MB", (9 * MiB).String(): "9MiB", Size(250e3).String(): "250KB", Size(1536).String(): "1.5KiB",
		FormatDelay(12500): "12.5us", FormatDelay(0): "0s", FormatDelay(1234567): "1234.567us",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestMAC(t *testing.T) {
	for text, ok := range map[string]bool{
		"02:00:0a:00:01:01": true, "02:00:0A:00:01:01": true,
		"": false, "02:00:0a:00:01": false, "02-00-0a-00-01-01": false, "0200:0a:00:01:01:": false, "02:00:0a:00:01:0g": false,
	} {
		m, err := parseMAC(text)
		if (err == nil) != ok || ok && m != (MAC{2, 0, 10, 0, 1, 1}) {
			t.Errorf("%q: %v (%v)", text, m, err)
		}
	}
}

// TestPlan: all leaves have subnets of the same size, large enough for their
// hosts.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		leaves, hosts int
		want          string // address of the last host at the last leaf
	}{
		{2, 16, "10.0.2.16/24"},
		{300, 254, "10.1.44.254/24"},
		{65535, 1, "10.255.255.1/24"},
		{65536, 1, ""},
		{3, 255, "10.0.6.255/23"},
		{3, 600, "10.0.14.88/22"},
	} {
		p, err := planFor(c.leaves, c.hosts)
		got := ""
		if err == nil {
			got = p.host(c.leaves, c.hosts).String()
		}
		if got != c.want {
			t.Errorf("%d leaves of %d hosts: %s (%v), want %s", c.leaves, c.hosts, got, err, c.want)
		}
	}
}
