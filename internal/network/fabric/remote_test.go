package fabric

import "testing"

func TestRemote(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:9090": false, "localhost:9090": false, "[::1]:9090": false, "127.8.9.1:0": false, "127.0.0.1:99999": false,
		"0.0.0.0:9090": true, ":9090": true, "[::]:9090": true, "192.0.2.1:9090": true,
		"nonsense": false, "": false,
	} {
		if got := Remote(address); got != want {
			t.Errorf("Remote(%q) = %v", address, got)
		}
	}
}
