package netspace

import (
	"bytes"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// offloads are kernel features that rely on hardware. Between two namespaces checksums
// would never be computed, several packets would travel as one, and VLAN tags would be
// stored beside the packet. A switch that parses packets needs them all disabled.
// Checksums come first, because others depend on them.
var offloads = []offload{
	{"checksums of packets sent", unix.ETHTOOL_STXCSUM},
	{"scatter and gather", unix.ETHTOOL_SSG},
	{"TCP segmentation", unix.ETHTOOL_STSO},
	{"segmentation", unix.ETHTOOL_SGSO},
	{"aggregation of packets received", unix.ETHTOOL_SGRO},
	tagsBeside,
}

type offload struct {
	name string
	set  uint32
}

var tagsBeside = offload{"tags beside packets", unix.ETHTOOL_SFLAGS}

// unknownSegments are the features that a port does not complete: segments of other protocols
// than TCP and within tunnels.
var unknownSegments = []string{
	"tx-gre-segmentation", "tx-gre-csum-segmentation", "tx-ipxip4-segmentation", "tx-ipxip6-segmentation",
	"tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation", "tx-gso-partial", "tx-tunnel-remcsum-segmentation",
	"tx-sctp-segmentation", "tx-esp-segmentation", "tx-udp-segmentation", "tx-gso-list", "tx-checksum-sctp",
}

// setOffloads makes an interface of this namespace process each packet separately and completely.
// keep leaves checksums and TCP segmentation to the other end.
//
// Hostile input: none. The commands are constant.
func setOffloads(name string, keep bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer unix.Close(fd)
	list := offloads
	if keep {
		list = []offload{tagsBeside}
		if err := switchOff(fd, name, unknownSegments); err != nil {
			return fmt.Errorf("switching segmentation of other protocols than TCP off at %s: %w", name, err)
		}
	}
	for _, o := range list {
		value := struct{ command, value uint32 }{o.set, 0}
		if err := ethtool(fd, name, unsafe.Pointer(&value)); err != nil && err != unix.EOPNOTSUPP {
			return fmt.Errorf("switching %s off at %s: %w", o.name, name, err)
		}
	}
	return nil
}

// switchOff disables features by name. The kernel has numbers for them that differ between versions.
//
// Hostile input: none. The kernel writes at most 64 names, and the memory holds 256.
func switchOff(fd int, name string, features []string) error {
	const most, length = 256, 32 // names, and bytes of a name
	const setOfFeatures = 4      // ETH_SS_FEATURES
	var names struct {
		command, set, count uint32
		text                [most * length]byte
	}
	names.command, names.set = unix.ETHTOOL_GSTRINGS, setOfFeatures
	if err := ethtool(fd, name, unsafe.Pointer(&names)); err != nil {
		return err
	}
	var change struct {
		command, words uint32
		features       [most / 32]struct{ valid, requested uint32 }
	}
	change.command, change.words = unix.ETHTOOL_SFEATURES, (min(names.count, most)+31)/32
	for i := range min(names.count, most) {
		text, _, _ := bytes.Cut(names.text[i*length:][:length], []byte{0})
		if slices.Contains(features, string(text)) {
			change.features[i/32].valid |= 1 << (i % 32)
		}
	}
	return ethtool(fd, name, unsafe.Pointer(&change))
}

// ethtool runs a command of linux/ethtool.h, which begins with its number.
//
// Hostile input: none. The name is cut to the kernel's field.
func ethtool(fd int, name string, command unsafe.Pointer) error {
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [24 - unsafe.Sizeof(uintptr(0))]byte // the union in a struct ifreq
	}{data: command}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}
