package ports

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An xdpSocket is an AF_XDP socket. Packets are received and sent in frames of
// memory registered with the kernel, without socket buffers for received
// packets and without a system call per sent packet. A BPF program at the
// interface passes all incoming packets to the socket, so the host's network
// stack sees none.
//
// The frames are partitioned: the first rxFrames circulate between the fill and
// the receive ring, the others between unused, the send and the completion
// ring.
type xdpSocket struct {
	fd       int
	redirect *xdpRedirect
	memory   []byte
	frame    int // bytes per frame

	fill, rx, tx, done xdpRing
	taken              []uint64 // frames of the burst, to be returned to the fill ring

	unused  []uint64 // frames free for sending
	waiting int      // packets queued since the last flush
	unsent  uint64   // lost packets
}

const (
	rxFrames = 2048
	txFrames = 512
	// xdpHeadroom is the space that the kernel reserves before a received
	// packet.
	xdpHeadroom = 256
	// sendTries bounds consecutive calls in which the kernel takes no packet.
	sendTries = 4
	// queuePatience is how long to wait for a queue that is in use.
	queuePatience = 3 * time.Second
)

// An xdpRing is one of the four rings of a socket. One side advances producer,
// the other consumer; entries are descriptors or frame addresses.
//
// Hostile input: none. The kernel alone writes the entries of its side, and the offsets of
// the rings.
type xdpRing struct {
	memory             []byte
	producer, consumer *uint32
	entries            unsafe.Pointer
	size               uint32
}

// Hostile input: none. The mask keeps i within the size entries of the mapping.
func (r *xdpRing) address(i uint32) *uint64 {
	return (*uint64)(unsafe.Add(r.entries, uintptr(i&(r.size-1))*8))
}

// Hostile input: none, as for address. Uses of Addr and Len slice x.memory, which checks them.
func (r *xdpRing) desc(i uint32) *unix.XDPDesc {
	return (*unix.XDPDesc)(unsafe.Add(r.entries, uintptr(i&(r.size-1))*unsafe.Sizeof(unix.XDPDesc{})))
}

// newXDP opens a socket on an interface. It fails if the kernel, the driver or
// the permissions do not allow it, if packets may be larger than a frame, or if
// the interface has several queues, each of which would need a socket.
func newXDP(link *net.Interface) (_ exchange, err error) {
	const ethernetAndTags = 14 + 8
	x := &xdpSocket{fd: -1, frame: 2048}
	if need := link.MTU + ethernetAndTags + xdpHeadroom; need > x.frame {
		if x.frame = 4096; need > x.frame {
			return nil, fmt.Errorf("the MTU is %d: packets of that size do not fit into an XDP frame", link.MTU)
		}
	}
	if queues, _ := filepath.Glob("/sys/class/net/" + link.Name + "/queues/rx-*"); len(queues) > 1 {
		return nil, fmt.Errorf("the interface has %d receive queues, XDP needs exactly one: run ethtool -L %s combined 1", len(queues), link.Name)
	}
	defer func() {
		if err != nil {
			x.free()
		}
	}()
	if x.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("XDP: %w", err)
	}
	if err = x.share(); err != nil {
		return nil, fmt.Errorf("XDP: sharing memory: %w", err)
	}
	// Every driver supports copy mode. Between virtual interfaces, where
	// zero-copy saves nothing, it is as fast.
	address := &unix.SockaddrXDP{Flags: unix.XDP_COPY | unix.XDP_USE_NEED_WAKEUP, Ifindex: uint32(link.Index)}
	// The kernel releases the queue of a closed socket with a delay.
	for end := time.Now().Add(queuePatience); ; time.Sleep(time.Millisecond) {
		if err = unix.Bind(x.fd, address); !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("XDP: %w", err)
	}
	if x.redirect, err = redirectTo(x.fd, link.Index); err != nil {
		return nil, err
	}
	return x, nil
}

// share allocates the frames and rings and fills the fill ring.
//
// Hostile input: none. The area is the mapping that was just made.
func (x *xdpSocket) share() (err error) {
	const frames = rxFrames + txFrames
	x.memory, err = unix.Mmap(-1, 0, frames*x.frame, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	area := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&x.memory[0]))), Len: uint64(len(x.memory)), Size: uint32(x.frame)}
	if err := x.set(unix.XDP_UMEM_REG, unsafe.Pointer(&area), unsafe.Sizeof(area)); err != nil {
		return err
	}
	for _, r := range []struct{ option, size int }{
		{unix.XDP_UMEM_FILL_RING, rxFrames}, {unix.XDP_RX_RING, rxFrames}, {unix.XDP_TX_RING, txFrames}, {unix.XDP_UMEM_COMPLETION_RING, txFrames},
	} {
		if err := unix.SetsockoptInt(x.fd, unix.SOL_XDP, r.option, r.size); err != nil {
			return err
		}
	}
	// Optional: without it, one call sends 32 packets.
	unix.SetsockoptInt(x.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, maxBurst)
	if err := x.mapRings(); err != nil {
		return err
	}
	for i := range uint32(rxFrames) {
		*x.fill.address(i) = uint64(i) * uint64(x.frame)
	}
	atomic.StoreUint32(x.fill.producer, rxFrames)
	for i := range txFrames {
		x.unused = append(x.unused, uint64((rxFrames+i)*x.frame))
	}
	return nil
}

// Hostile input: none. value points to size bytes of the caller.
func (x *xdpSocket) set(option int, value unsafe.Pointer, size uintptr) error {
	if _, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(x.fd), unix.SOL_XDP, uintptr(option), uintptr(value), size, 0); errno != 0 {
		return errno
	}
	return nil
}

// Hostile input: none. The kernel writes off; indexing b checks each offset, and the mapping
// holds size entries from off.Desc on.
func (x *xdpSocket) mapRings() error {
	var off unix.XDPMmapOffsets
	size := uint32(unsafe.Sizeof(off))
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(x.fd), unix.SOL_XDP, unix.XDP_MMAP_OFFSETS,
		uintptr(unsafe.Pointer(&off)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return errno
	}
	const address, desc = 8, int(unsafe.Sizeof(unix.XDPDesc{}))
	for _, m := range []struct {
		ring        *xdpRing
		off         unix.XDPRingOffset
		page        int64
		size, entry int
	}{
		{&x.fill, off.Fr, unix.XDP_UMEM_PGOFF_FILL_RING, rxFrames, address},
		{&x.rx, off.Rx, unix.XDP_PGOFF_RX_RING, rxFrames, desc},
		{&x.tx, off.Tx, unix.XDP_PGOFF_TX_RING, txFrames, desc},
		{&x.done, off.Cr, unix.XDP_UMEM_PGOFF_COMPLETION_RING, txFrames, address},
	} {
		b, err := unix.Mmap(x.fd, m.page, int(m.off.Desc)+m.size*m.entry, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return err
		}
		*m.ring = xdpRing{
			memory: b, size: uint32(m.size), entries: unsafe.Pointer(&b[m.off.Desc]),
			producer: (*uint32)(unsafe.Pointer(&b[m.off.Producer])), consumer: (*uint32)(unsafe.Pointer(&b[m.off.Consumer])),
		}
	}
	return nil
}

func (x *xdpSocket) collect(burst [][]byte) ([][]byte, bool) {
	at := *x.rx.consumer // written by this side only
	n := min(atomic.LoadUint32(x.rx.producer)-at, maxBurst)
	for i := range n {
		d := x.rx.desc(at + i)
		burst = append(burst, x.memory[d.Addr:][:d.Len])
		x.taken = append(x.taken, d.Addr&^uint64(x.frame-1))
	}
	atomic.StoreUint32(x.rx.consumer, at+n)
	return burst, n > 0
}

// giveBack returns the frames of the burst to the fill ring, which has room for
// all frames.
func (x *xdpSocket) giveBack() {
	at := *x.fill.producer // written by this side only
	for i, a := range x.taken {
		*x.fill.address(at + uint32(i)) = a
	}
	atomic.StoreUint32(x.fill.producer, at+uint32(len(x.taken)))
	x.taken = x.taken[:0]
}

// put drops packets that are larger than a frame, and all packets while no
// frame is free.
func (x *xdpSocket) put(packet []byte) bool {
	if len(x.unused) == 0 {
		x.reap()
	}
	if len(packet) > x.frame || len(x.unused) == 0 {
		x.unsent++
		return false
	}
	a := x.unused[len(x.unused)-1]
	x.unused = x.unused[:len(x.unused)-1]
	copy(x.memory[a:], packet)
	*x.tx.desc(*x.tx.producer + uint32(x.waiting)) = unix.XDPDesc{Addr: a, Len: uint32(len(packet))}
	x.waiting++
	return x.waiting == maxBurst
}

// reap takes back the frames of sent packets.
func (x *xdpSocket) reap() {
	at, to := *x.done.consumer, atomic.LoadUint32(x.done.producer)
	for ; at != to; at++ {
		x.unused = append(x.unused, *x.done.address(at))
	}
	atomic.StoreUint32(x.done.consumer, at)
}

// flush makes the kernel copy the packets. If the interface's queue is full,
// packets are lost: waiting would block the whole switch.
func (x *xdpSocket) flush() error {
	if x.waiting == 0 {
		return nil
	}
	end := *x.tx.producer + uint32(x.waiting)
	x.waiting = 0
	atomic.StoreUint32(x.tx.producer, end)
	before := atomic.LoadUint32(x.tx.consumer)
	for tries := 0; before != end && tries < sendTries; {
		_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(x.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		x.reap()
		now := atomic.LoadUint32(x.tx.consumer)
		if tries++; now != before {
			before, tries = now, 0
		}
		switch errno {
		case 0, unix.EINTR, unix.EAGAIN, unix.EBUSY, unix.ENOBUFS:
		case unix.ENETDOWN, unix.ENXIO:
			x.lose(before, end)
			return nil
		default:
			x.lose(before, end)
			return errno
		}
	}
	x.lose(before, end)
	return nil
}

// lose takes back packets that the kernel has not sent. The kernel skips
// descriptors with an address outside its memory.
func (x *xdpSocket) lose(from, to uint32) {
	for ; from != to; from++ {
		d := x.tx.desc(from)
		x.unused = append(x.unused, d.Addr)
		d.Addr = ^uint64(0)
		x.unsent++
	}
}

// Hostile input: none. The kernel writes size bytes of s at most.
func (x *xdpSocket) lost() (in, out uint64) {
	var s unix.XDPStatistics
	size := uint32(unsafe.Sizeof(s))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(x.fd), unix.SOL_XDP, unix.XDP_STATISTICS,
		uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&size)), 0)
	if errno == 0 {
		in = s.Rx_dropped + s.Rx_ring_full
	}
	return in, x.unsent
}

func (x *xdpSocket) pollFd() int { return x.fd }

func (x *xdpSocket) free() {
	if x.redirect != nil {
		x.redirect.close()
	}
	for _, r := range []*xdpRing{&x.fill, &x.rx, &x.tx, &x.done} {
		if r.memory != nil {
			unix.Munmap(r.memory)
		}
	}
	if x.fd >= 0 {
		unix.Close(x.fd)
	}
	if x.memory != nil {
		unix.Munmap(x.memory)
	}
}
