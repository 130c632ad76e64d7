package netspace

import (
	"bytes"
	"fmt"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// HostsFile returns the hosts of a topology in the format of /etc/hosts.
func HostsFile(t *fabric.Topology) []byte {
	b := bytes.NewBufferString("\n")
	for _, h := range t.Hosts {
		fmt.Fprintf(b, "%v\t%s\n", h.IP.Addr(), h.Name)
	}
	return b.Bytes()
}
