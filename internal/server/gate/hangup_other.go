//go:build !unix

package gate

import "net"

// hungUp is not implemented: the server notices closed connections later.
func hungUp(net.Conn) bool { return false }
