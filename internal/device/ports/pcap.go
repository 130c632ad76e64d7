package ports

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// A pcapPort plays one capture in at the pace at which it was taken, and
// writes what is sent to another. What that file held stays until the port is used:
// another port of the switch may not open.
type pcapPort struct {
	in    *pcapReader // nil: nothing comes in
	out   *pcapWriter // nil: what is sent is lost
	fresh bool        // out's file was not there before
	done  chan struct{}

	mu            sync.Mutex
	begun, closed bool
}

func openPcap(in, out string) (Port, error) {
	p := &pcapPort{done: make(chan struct{})}
	if in != "" {
		f, err := openCapture(in, out)
		if err != nil {
			return nil, err
		}
		if p.in, err = newPcapReader(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w", in, err)
		}
	}
	if out != "" {
		_, err := os.Stat(out)
		p.fresh = errors.Is(err, fs.ErrNotExist)
		f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		p.out = newPcapWriter(f)
	}
	return p, nil
}

// begin empties the file that is written, once.
func (p *pcapPort) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out != nil && !p.begun && !p.closed {
		p.out.file.Truncate(0) // a device or a pipe has nothing to empty
		p.begun = true
	}
}

// openCapture opens a capture to be played, which must not be the one that is to
// be written: that would be emptied first. Opening a pipe might wait for ever.
func openCapture(in, out string) (*os.File, error) {
	info, err := os.Stat(in)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", in)
	}
	if other, err := os.Stat(out); err == nil && os.SameFile(info, other) {
		return nil, fmt.Errorf("%s would be played and written: want two files", in)
	}
	return os.Open(in)
}

// Finite says that Receive ends by itself, once the capture is played.
func (p *pcapPort) Finite() bool { return true }

// Receive is part of Port.
func (p *pcapPort) Receive(deliver func([][]byte)) error {
	p.begin()
	if p.in == nil {
		return nil
	}
	defer p.in.file.Close()
	start := time.Now()
	var first time.Duration
	for n := 0; ; n++ {
		at, packet, err := p.in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: packet %d: %w", p.in.file.Name(), n+1, err)
		}
		if n == 0 {
			first = at
		}
		if at -= first; at > maxPlaying {
			return fmt.Errorf("%s: packet %d: it comes %v after the first, want at most %v", p.in.file.Name(), n+1, at, maxPlaying)
		}
		if !p.wait(at - time.Since(start)) {
			return nil
		}
		deliver([][]byte{packet})
	}
}

// maxPlaying is how long a capture may play. One with the wrong times in it would
// otherwise keep the switch for a century, and say nothing.
const maxPlaying = 1000 * time.Hour

// wait reports false when the port is closed meanwhile.
func (p *pcapPort) wait(d time.Duration) bool {
	if d <= 0 {
		select {
		case <-p.done:
			return false
		default:
			return true
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.done:
		return false
	}
}

// Send is part of Port.
func (p *pcapPort) Send(packet []byte) {
	if p.out != nil {
		p.begin()
		p.out.write(time.Now(), packet)
	}
}

// Flush is part of Port.
func (p *pcapPort) Flush() error {
	if p.out == nil {
		return nil
	}
	p.begin()
	return p.out.buf.Flush()
}

// Close is part of Port.
func (p *pcapPort) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	close(p.done)
	switch {
	case p.out == nil:
		return nil
	case p.begun:
		return errors.Join(p.out.buf.Flush(), p.out.file.Close())
	case p.fresh:
		defer os.Remove(p.out.file.Name())
	}
	return p.out.file.Close()
}

// The magic numbers of captures with times in micro- and nanoseconds.
const (
	magicMicro = 0xa1b2c3d4
	magicNano  = 0xa1b23c4d

	pcapHeader   = 24
	recordHeader = 16
	linkEthernet = 1
	linkBits     = 1<<26 - 1 // of the field; the others say how long a frame's checksum is
)

// A pcapReader reads a capture in the classic format, of either byte order.
type pcapReader struct {
	file  *os.File
	buf   *bufio.Reader
	order binary.ByteOrder
	unit  time.Duration
}

func newPcapReader(f *os.File) (*pcapReader, error) {
	r := &pcapReader{file: f, buf: bufio.NewReader(f), order: binary.LittleEndian}
	var head [pcapHeader]byte
	if _, err := io.ReadFull(r.buf, head[:]); err != nil {
		return nil, errors.New("not a capture: it is too short")
	}
	if magic := binary.BigEndian.Uint32(head[:]); magic == magicMicro || magic == magicNano {
		r.order = binary.BigEndian
	}
	switch r.order.Uint32(head[:]) {
	case magicMicro:
		r.unit = time.Microsecond
	case magicNano:
		r.unit = time.Nanosecond
	default:
		return nil, errors.New("not a capture in the pcap format (pcapng is not supported)")
	}
	if link := r.order.Uint32(head[20:]); link&linkBits != linkEthernet {
		name, known := links[link&linkBits]
		if !known {
			name = "not known"
		}
		return nil, fmt.Errorf("its packets have link type %d (%s): want %d (Ethernet)", link, name, linkEthernet)
	}
	return r, nil
}

// links are the link types, beside Ethernet, that captures are often of.
var links = map[uint32]string{
	0: "loopback of BSD", 12: "raw IP", 101: "raw IP", 105: "802.11", 108: "loopback of OpenBSD", 113: "any interface of Linux",
	127: "802.11 with radio", 228: "raw IPv4", 229: "raw IPv6", 276: "any interface of Linux",
}

var errCut = errors.New("the capture ends within it")

// next returns a packet and its time. The packet is the caller's.
func (r *pcapReader) next() (time.Duration, []byte, error) {
	var head [recordHeader]byte
	if _, err := io.ReadFull(r.buf, head[:]); errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, nil, errCut
	} else if err != nil {
		return 0, nil, err
	}
	n := r.order.Uint32(head[8:])
	if n > maxPacket {
		return 0, nil, fmt.Errorf("it has %d bytes, more than %d", n, maxPacket)
	}
	packet := make([]byte, n)
	if _, err := io.ReadFull(r.buf, packet); err != nil {
		return 0, nil, errCut
	}
	at := time.Duration(r.order.Uint32(head[:]))*time.Second + time.Duration(r.order.Uint32(head[4:]))*r.unit
	return at, packet, nil
}

// A pcapWriter writes a capture of Ethernet packets with microseconds, or of
// virtual time with nanoseconds. An error stays until it is flushed.
type pcapWriter struct {
	file *os.File
	buf  *bufio.Writer
}

func newPcapWriter(f *os.File) *pcapWriter { return writePcap(f, magicMicro) }

func writePcap(f *os.File, magic uint32) *pcapWriter {
	w := &pcapWriter{f, bufio.NewWriter(f)}
	var head [pcapHeader]byte
	binary.LittleEndian.PutUint32(head[:], magic)
	binary.LittleEndian.PutUint16(head[4:], 2)
	binary.LittleEndian.PutUint16(head[6:], 4)
	binary.LittleEndian.PutUint32(head[16:], maxPacket)
	binary.LittleEndian.PutUint32(head[20:], linkEthernet)
	w.buf.Write(head[:])
	return w
}

func (w *pcapWriter) write(at time.Time, packet []byte) {
	w.record(uint32(at.Unix()), uint32(at.Nanosecond()/1000), packet, len(packet))
}

// record writes a packet of a length, of which head is there, at a time in seconds and
// parts of one.
func (w *pcapWriter) record(seconds, parts uint32, head []byte, length int) error {
	var record [recordHeader]byte
	for i, v := range []uint32{seconds, parts, uint32(len(head)), uint32(length)} {
		binary.LittleEndian.PutUint32(record[4*i:], v)
	}
	w.buf.Write(record[:])
	_, err := w.buf.Write(head) // of any of the two
	return err
}

// A VirtualCapture is a capture in virtual time, of packets of which only the
// first bytes are there.
type VirtualCapture struct{ w *pcapWriter }

// CreateVirtual begins a capture in a file.
func CreateVirtual(file string) (*VirtualCapture, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("capturing packets: %w", err)
	}
	return &VirtualCapture{writePcap(f, magicNano)}, nil
}

// Write adds a packet of a length, whose first bytes are head. The error, such
// as a full disk, may be about packets that were added before.
func (c *VirtualCapture) Write(at time.Duration, head []byte, length int) error {
	return c.w.record(uint32(at/time.Second), uint32(at%time.Second), head, length)
}

// Close writes what is left.
func (c *VirtualCapture) Close() error { return errors.Join(c.w.buf.Flush(), c.w.file.Close()) }
