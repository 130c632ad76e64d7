package ports

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An xdpRedirect is the BPF program at an interface that passes packets to a
// socket. It stays attached until the link is closed or the process ends.
type xdpRedirect struct{ sockets, program, link int }

// The attach modes: in the driver, before other processing, or generic.
var xdpModes = []uint32{unix.XDP_FLAGS_DRV_MODE, unix.XDP_FLAGS_SKB_MODE}

// redirectTo attaches the program to an interface.
//
// Hostile input: none. All attributes are local variables of their full size.
func redirectTo(socket, ifindex int) (_ *xdpRedirect, err error) {
	if bits.UintSize != 64 {
		return nil, errors.New("XDP needs a 64-bit machine")
	}
	r := &xdpRedirect{-1, -1, -1}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	create := struct{ kind, key, value, entries uint32 }{unix.BPF_MAP_TYPE_XSKMAP, 4, 4, 1}
	if r.sockets, err = bpf(unix.BPF_MAP_CREATE, unsafe.Pointer(&create), unsafe.Sizeof(create)); err != nil {
		return nil, fmt.Errorf("XDP: making a map: %w", err)
	}
	queue, fd := uint32(0), uint32(socket)
	update := struct {
		fd, _      uint32
		key, value unsafe.Pointer
		flags      uint64
	}{fd: uint32(r.sockets), key: unsafe.Pointer(&queue), value: unsafe.Pointer(&fd)}
	if _, err = bpf(unix.BPF_MAP_UPDATE_ELEM, unsafe.Pointer(&update), unsafe.Sizeof(update)); err != nil {
		return nil, fmt.Errorf("XDP: filling a map: %w", err)
	}
	if r.program, err = loadRedirect(r.sockets); err != nil {
		return nil, fmt.Errorf("XDP: loading a program: %w", err)
	}
	for _, mode := range xdpModes {
		attach := struct{ program, ifindex, kind, flags uint32 }{uint32(r.program), uint32(ifindex), unix.BPF_XDP, mode}
		if r.link, err = bpf(unix.BPF_LINK_CREATE, unsafe.Pointer(&attach), unsafe.Sizeof(attach)); err == nil {
			return r, nil
		}
		r.link = -1
	}
	return nil, fmt.Errorf("XDP: attaching a program: %w", err)
}

// loadRedirect loads
//
//	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS)
//
// Hostile input: none. The program and its license are constants.
func loadRedirect(sockets int) (int, error) {
	const (
		loadWord, loadDouble, move, call, exit = 0x61, 0x18, 0xb7, 0x85, 0x95

		queueIndex  = 16 // in struct xdp_md
		redirectMap = 51
		pass        = 2
	)
	type instruction struct {
		op, registers byte // the source register in the upper four bits
		off           int16
		imm           int32
	}
	code := []instruction{
		{loadWord, 2 | 1<<4, queueIndex, 0},
		{loadDouble, 1 | unix.BPF_PSEUDO_MAP_FD<<4, 0, int32(sockets)}, {},
		{move, 3, 0, pass},
		{call, 0, 0, redirectMap},
		{exit, 0, 0, 0},
	}
	license := [...]byte{'G', 'P', 'L', 0}
	load := struct {
		kind, count   uint32
		code, license unsafe.Pointer
	}{unix.BPF_PROG_TYPE_XDP, uint32(len(code)), unsafe.Pointer(&code[0]), unsafe.Pointer(&license[0])}
	return bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&load), unsafe.Sizeof(load))
}

// bpf calls the system call bpf. Its structures contain 64-bit pointers.
//
// Hostile input: none. attributes points to size bytes of the caller.
func bpf(command uintptr, attributes unsafe.Pointer, size uintptr) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(attributes), size)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

func (r *xdpRedirect) close() {
	for _, fd := range []int{r.link, r.program, r.sockets} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
