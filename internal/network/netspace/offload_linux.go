package netspace

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// offloads are kernel features that rely on hardware. Between two namespaces checksums
// would never be computed, several packets would travel as one, and VLAN tags would be
// stored beside the packet. A switch that parses packets needs them all disabled.
// Checksums come first, because others depend on them.
var offloads = []struct {
	name string
	set  uint32
}{
	{"checksums of packets sent", unix.ETHTOOL_STXCSUM},
	{"scatter and gather", unix.ETHTOOL_SSG},
	{"TCP segmentation", unix.ETHTOOL_STSO},
	{"segmentation", unix.ETHTOOL_SGSO},
	{"aggregation of packets received", unix.ETHTOOL_SGRO},
	{"tags beside packets", unix.ETHTOOL_SFLAGS},
}

// offloadsOff makes an interface of this namespace process each packet separately and completely.
func offloadsOff(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer unix.Close(fd)
	for _, o := range offloads {
		if err := ethtool(fd, name, o.set, 0); err != nil && err != unix.EOPNOTSUPP {
			return fmt.Errorf("switching %s off at %s: %w", o.name, name, err)
		}
	}
	return nil
}

// ethtool sets one value of an interface, as in linux/ethtool.h.
//
// Hostile input: none. The name is cut to the kernel's field, the rest is constant.
func ethtool(fd int, name string, command, value uint32) error {
	data := struct{ command, value uint32 }{command, value}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [24 - unsafe.Sizeof(uintptr(0))]byte // the union in a struct ifreq
	}{data: unsafe.Pointer(&data)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}
