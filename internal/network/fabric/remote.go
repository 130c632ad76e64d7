package fabric

import "net"

// Remote reports whether other machines can reach a TCP address with host and
// port. Invalid addresses are reported by Listen.
func Remote(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return err == nil
	}
	ip, err := net.ResolveIPAddr("ip", host)
	return err == nil && !ip.IP.IsLoopback()
}
