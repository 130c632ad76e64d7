//go:build !linux

package ports

import "fmt"

func openInterface(_, name string) (Port, error) {
	return nil, fmt.Errorf("port %s: network interfaces are supported on Linux only", name)
}
