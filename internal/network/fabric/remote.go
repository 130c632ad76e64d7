package fabric

import "net"

// Remote reports whether others than this machine reach a TCP address, a host and
// a port. One that cannot be understood is left to those who listen there.
func Remote(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return err == nil
	}
	ip, err := net.ResolveIPAddr("ip", host)
	return err == nil && !ip.IP.IsLoopback()
}
