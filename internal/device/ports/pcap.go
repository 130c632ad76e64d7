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

// A pcapPort replays one capture at its original pace and writes sent packets
// to another. An existing output file is truncated only when the port is used:
// opening another port of the switch may still fail.
type pcapPort struct {
	in    *pcapReader // nil: the port receives nothing
	out   *pcapWriter // nil: sent packets are lost
	fresh bool        // the output file was created by this port
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

// begin truncates the output file, once.
func (p *pcapPort) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out != nil && !p.begun && !p.closed {
		p.out.file.Truncate(0) // has no effect on a device or a pipe
		p.begun = true
	}
}

// openCapture opens a capture for replay. It rejects the output file, which
// would be truncated first, and anything but a regular file, because opening a
// pipe may block.
func openCapture(in, out string) (*os.File, error) {
	info, err := os.Stat(in)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", in)
	}
	if other, err := os.Stat(out); err == nil && os.SameFile(info, other) {
		return nil, fmt.Errorf("%s cannot be both input and output: want two files", in)
	}
	return os.Open(in)
}

// Finite reports that Receive ends by itself at the end of the capture.
func (p *pcapPort) Finite() bool { return true }

// Receive implements Port.
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
			return fmt.Errorf("%s: packet %d: its time is %v after the first packet's, want at most %v", p.in.file.Name(), n+1, at, maxPlaying)
		}
		if !p.wait(at - time.Since(start)) {
			return nil
		}
		deliver([][]byte{packet})
	}
}

// maxPlaying is the longest duration of a capture. Wrong timestamps could
// otherwise keep the switch busy for a century without any message.
const maxPlaying = 1000 * time.Hour

// wait waits for d. It returns false if the port is closed.
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

// Send implements Port.
func (p *pcapPort) Send(packet []byte) {
	if p.out != nil {
		p.begin()
		p.out.write(time.Now(), packet)
	}
}

// Flush implements Port.
func (p *pcapPort) Flush() error {
	if p.out == nil {
		return nil
	}
	p.begin()
	return p.out.buf.Flush()
}

// Close implements Port.
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

// The magic numbers of captures with microsecond and nanosecond timestamps.
const (
	magicMicro = 0xa1b2c3d4
	magicNano  = 0xa1b23c4d

	pcapHeader   = 24
	recordHeader = 16
	linkEthernet = 1
	linkBits     = 1<<26 - 1 // the link type within its field; the other bits describe the frame check sequence
)

// A pcapReader reads a capture in the classic format, in either byte order.
type pcapReader struct {
	file  *os.File
	buf   *bufio.Reader
	order binary.ByteOrder
	unit  time.Duration
}

func newPcapReader(f *os.File) (*pcapReader, error) {
	r, err := newPcapStream(f)
	if err != nil {
		return nil, err
	}
	r.file = f
	return r, nil
}

// ReadCapture returns the first packets of an Ethernet capture, at most most of
// them.
func ReadCapture(from io.Reader, most int) ([][]byte, error) {
	r, err := newPcapStream(from)
	if err != nil {
		return nil, err
	}
	var list [][]byte
	for len(list) < most {
		_, packet, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("packet %d: %w", len(list)+1, err)
		}
		list = append(list, packet)
	}
	return list, nil
}

func newPcapStream(from io.Reader) (*pcapReader, error) {
	r := &pcapReader{buf: bufio.NewReader(from), order: binary.LittleEndian}
	var head [pcapHeader]byte
	if _, err := io.ReadFull(r.buf, head[:]); err != nil {
		return nil, errors.New("not a capture: the file is too short")
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
			name = "unknown"
		}
		return nil, fmt.Errorf("the capture has link type %d (%s): want %d (Ethernet)", link, name, linkEthernet)
	}
	return r, nil
}

// links names common link types of captures other than Ethernet.
var links = map[uint32]string{
	0: "BSD loopback", 12: "raw IP", 101: "raw IP", 105: "802.11", 108: "OpenBSD loopback", 113: "Linux cooked",
	127: "802.11 with radiotap", 228: "raw IPv4", 229: "raw IPv6", 276: "Linux cooked v2",
}

var errCut = errors.New("the capture is truncated within this packet")

// next returns a packet and its time. The packet belongs to the caller.
func (r *pcapReader) next() (time.Duration, []byte, error) {
	var head [recordHeader]byte
	if _, err := io.ReadFull(r.buf, head[:]); errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, nil, errCut
	} else if err != nil {
		return 0, nil, err
	}
	n := r.order.Uint32(head[8:])
	if n > maxPacket {
		return 0, nil, fmt.Errorf("the packet has %d bytes, want at most %d", n, maxPacket)
	}
	packet := make([]byte, n)
	if _, err := io.ReadFull(r.buf, packet); err != nil {
		return 0, nil, errCut
	}
	at := time.Duration(r.order.Uint32(head[:]))*time.Second + time.Duration(r.order.Uint32(head[4:]))*r.unit
	return at, packet, nil
}

// A pcapWriter writes a capture of Ethernet packets, with microseconds, or with
// nanoseconds for virtual time. Flush returns an earlier error.
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

// record writes the first bytes of a packet with the given original length. The
// time is in seconds and fractions, in the unit of the file.
func (w *pcapWriter) record(seconds, parts uint32, head []byte, length int) error {
	var record [recordHeader]byte
	for i, v := range []uint32{seconds, parts, uint32(len(head)), uint32(length)} {
		binary.LittleEndian.PutUint32(record[4*i:], v)
	}
	w.buf.Write(record[:])
	_, err := w.buf.Write(head) // also returns the error of the first write
	return err
}

// A VirtualCapture is a capture in virtual time with truncated packets.
type VirtualCapture struct{ w *pcapWriter }

// CreateVirtual creates a capture file.
func CreateVirtual(file string) (*VirtualCapture, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("capturing packets: %w", err)
	}
	return &VirtualCapture{writePcap(f, magicNano)}, nil
}

// Write adds a packet of the given length; head holds its first bytes. The
// error, for example a full disk, may concern earlier packets.
func (c *VirtualCapture) Write(at time.Duration, head []byte, length int) error {
	return c.w.record(uint32(at/time.Second), uint32(at%time.Second), head, length)
}

// Close flushes and closes the file.
func (c *VirtualCapture) Close() error { return errors.Join(c.w.buf.Flush(), c.w.file.Close()) }
