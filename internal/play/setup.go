package play

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/netip"
	"strings"

	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/controller/pipeline"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// An initialTest is a packet test to start from. It contains the entries that the
// controller writes to leaf l1 of the preset leaf-spine, and packets of several
// flows between its leaves.
type initialTest struct {
	Test  string `json:"test"`
	Ports []Port `json:"ports"`
}

// A Port is a port of the switch and its neighbour.
type Port struct {
	Number int    `json:"number"`
	Peer   string `json:"peer"`
}

func setup(ctx context.Context, r SchemeRequest, _ Progress) (*initialTest, error) {
	if test, err := examples.FS.ReadFile(r.Name + ".stf"); err == nil {
		return &initialTest{Test: string(test), Ports: []Port{}}, nil
	}
	s, err := r.find()
	if err != nil {
		return nil, err
	}
	preset, err := fabric.PresetNamed("leaf-spine")
	if err != nil {
		return nil, err
	}
	t, err := preset.Make()
	if err != nil {
		return nil, err
	}
	p := r.params()
	p.Provenance = nil
	pipelines, err := pipeline.For(ctx, s, p, t)
	if err != nil {
		return nil, err
	}
	planned, err := plan.New(t, pipelines, plan.Options{})
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return &initialTest{Test: "# " + first + "\n", Ports: []Port{}}, nil
	}
	sw := planned.Switches[0]
	out := &initialTest{}
	for _, port := range t.Ports(sw.Name) {
		out.Ports = append(out.Ports, Port{port.Number, port.Peer})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# The entries of %s in the network leaf-spine, as p4lb deploy sets them.\n", sw.Name)
	for _, c := range sw.Sessions {
		fmt.Fprintf(&b, "mirroring_add %d %d\n", c.ID, c.Port)
	}
	for _, g := range sw.Groups {
		fmt.Fprintf(&b, "mc_mgrp_create %d\n", g.ID)
	}
	for i, g := range sw.Groups {
		fmt.Fprintf(&b, "mc_node_create 0 %s\nmc_node_associate %d %d\n", strings.Trim(fmt.Sprint(g.Ports), "[]"), g.ID, i)
	}
	for _, c := range sw.Registers {
		for i := c.From; i < min(c.To, c.From+64); i++ {
			if c.Value != 0 {
				fmt.Fprintf(&b, "register_write %s %d %d\n", c.Register, i, c.Value)
			}
		}
	}
	for _, e := range sw.Entries {
		writeEntry(&b, e)
	}
	writeFlows(&b, t, sw)
	out.Test = b.String()
	return out, nil
}

// writeEntry writes an entry as a statement of a test.
func writeEntry(b *strings.Builder, e plan.Entry) {
	var args []string
	for _, a := range e.Args {
		args = append(args, a.Name+":"+number(a.Upper, a.Value))
	}
	action := fmt.Sprintf("%s(%s)", e.Action, strings.Join(args, ", "))
	if e.Match == nil {
		fmt.Fprintf(b, "setdefault %s %s\n", e.Table, action)
		return
	}
	fmt.Fprintf(b, "add %s", e.Table)
	if e.Priority != 0 {
		fmt.Fprintf(b, " %d", e.Priority)
	}
	for _, m := range e.Match {
		if text := matchText(m); text != "" {
			fmt.Fprintf(b, " %s:%s", m.Field, text)
		}
	}
	fmt.Fprintf(b, " %s\n", action)
}

func matchText(m plan.Match) string {
	v := number(m.Upper, m.Value)
	if digits := (m.Width + 3) / 4; m.Upper == 0 && m.Width <= 64 {
		v = fmt.Sprintf("0x%0*x", digits, m.Value) // the number of hexadecimal digits gives the prefix length
	}
	switch {
	case m.Any:
		return ""
	case m.Mask != nil:
		return fmt.Sprintf("%s&&&%#x", v, *m.Mask)
	case m.High != nil:
		return fmt.Sprintf("%s..%#x", v, *m.High)
	case m.Bits != m.Width:
		return fmt.Sprintf("%s/%d", v, m.Bits)
	}
	return v
}

func number(upper, lower uint64) string {
	if upper == 0 {
		return fmt.Sprintf("%#x", lower)
	}
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, upper), lower)
	return fmt.Sprintf("%#x", new(big.Int).SetBytes(b))
}

// writeFlows writes packets of four flows from a host of the switch to a host of
// another leaf, and one back.
func writeFlows(b *strings.Builder, t *fabric.Topology, sw *plan.Switch) {
	var from, to *fabric.Host
	for i := range t.Hosts {
		h := &t.Hosts[i]
		switch {
		case h.Switch == sw.Name && from == nil:
			from = h
		case h.Switch != sw.Name && to == nil:
			to = h
		}
	}
	if from == nil || to == nil {
		return
	}
	fmt.Fprintf(b, "\n# Two packets of each of four flows from %s to %s.\n", from.Name, to.Name)
	for i := range 8 {
		f := form{Port: from.Port, SrcMAC: from.MAC.String(), DstMAC: to.MAC.String(), Src: from.IP.Addr().String(), Dst: to.IP.Addr().String(), Protocol: "tcp", SrcPort: 10000 + i%4, DstPort: 80, Payload: 16}
		line, err := f.line()
		if err != nil {
			return
		}
		b.WriteString(line + "\n")
	}
}

// A form describes a packet by its fields.
type form struct {
	Port     int    `json:"port"`
	SrcMAC   string `json:"srcMAC"`
	DstMAC   string `json:"dstMAC"`
	Src      string `json:"src"`
	Dst      string `json:"dst"`
	Protocol string `json:"protocol"` // tcp or udp
	SrcPort  int    `json:"srcPort"`
	DstPort  int    `json:"dstPort"`
	TTL      int    `json:"ttl"`     // 0 means 64
	Payload  int    `json:"payload"` // bytes
}

// line returns the packet as a statement of a test.
func (f *form) line() (string, error) {
	data, err := f.bytes()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("packet %d %s", f.Port, strings.ToUpper(hex.EncodeToString(data))), nil
}

// bytes returns the packet with its checksums.
func (f *form) bytes() ([]byte, error) {
	src, err := netip.ParseAddr(f.Src)
	if err != nil || !src.Is4() {
		return nil, fmt.Errorf("source %q: want an IPv4 address", f.Src)
	}
	dst, err := netip.ParseAddr(f.Dst)
	if err != nil || !dst.Is4() {
		return nil, fmt.Errorf("destination %q: want an IPv4 address", f.Dst)
	}
	switch {
	case f.Port < 0 || f.Port > 511:
		return nil, fmt.Errorf("port %d: want 0 to 511", f.Port)
	case f.SrcPort < 0 || f.SrcPort > 65535 || f.DstPort < 0 || f.DstPort > 65535:
		return nil, fmt.Errorf("ports %d and %d: want 0 to 65535", f.SrcPort, f.DstPort)
	case f.TTL < 0 || f.TTL > 255:
		return nil, fmt.Errorf("TTL %d: want 0 to 255", f.TTL)
	case f.Payload < 0 || f.Payload > 1400:
		return nil, fmt.Errorf("payload of %d bytes: want 0 to 1400", f.Payload)
	}
	var b []byte
	for _, text := range []string{f.DstMAC, f.SrcMAC} {
		mac, err := parseMAC(text)
		if err != nil {
			return nil, err
		}
		b = append(b, mac...)
	}
	b = append(b, 8, 0)
	protocol, head := byte(17), []byte(nil)
	payload := make([]byte, f.Payload)
	for i := range payload {
		payload[i] = byte('a' + i%26)
	}
	head = binary.BigEndian.AppendUint16(head, uint16(f.SrcPort))
	head = binary.BigEndian.AppendUint16(head, uint16(f.DstPort))
	sum := 6
	switch f.Protocol {
	case "", "tcp":
		protocol, sum = 6, 16
		head = append(head, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0x20, 0, 0, 0, 0, 0)
	case "udp":
		head = binary.BigEndian.AppendUint16(head, uint16(8+len(payload)))
		head = append(head, 0, 0)
	default:
		return nil, fmt.Errorf("protocol %q: want tcp or udp", f.Protocol)
	}
	segment := append(head, payload...)
	pseudo := append(append(append([]byte{}, src.AsSlice()...), dst.AsSlice()...), 0, protocol, byte(len(segment)>>8), byte(len(segment)))
	binary.BigEndian.PutUint16(segment[sum:], hash.Internet(append(pseudo, segment...)))
	ip := []byte{0x45, 0, 0, 0, 0, 1, 0x40, 0, byte(cmp.Or(f.TTL, 64)), protocol, 0, 0}
	ip = append(append(ip, src.AsSlice()...), dst.AsSlice()...)
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(segment)))
	binary.BigEndian.PutUint16(ip[10:], hash.Internet(ip))
	return append(append(b, ip...), segment...), nil
}

func parseMAC(text string) ([]byte, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(b) != 6 {
		return nil, fmt.Errorf("MAC address %q: want six bytes, as in 02:00:00:00:00:01", text)
	}
	return b, nil
}

// A captureRequest is a request to convert a packet of a form, or a capture file,
// to statements of a test.
type captureRequest struct {
	Form *form  `json:"form"`
	Pcap []byte `json:"pcap"` // in base64
	Port int    `json:"port"` // input port of the capture's packets
}

// A capture holds one statement for each packet.
type capture struct {
	Lines []string `json:"lines"`
	Cut   bool     `json:"cut"` // later packets were omitted
}

func readCapture(_ context.Context, r captureRequest, _ Progress) (*capture, error) {
	if r.Form != nil {
		line, err := r.Form.line()
		if err != nil {
			return nil, err
		}
		return &capture{Lines: []string{line}}, nil
	}
	list, cut, err := pcapPackets(r.Pcap, maxPackets)
	if err != nil {
		return nil, err
	}
	c := &capture{Lines: []string{}, Cut: cut}
	for _, data := range list {
		c.Lines = append(c.Lines, fmt.Sprintf("packet %d %s", r.Port, strings.ToUpper(hex.EncodeToString(data))))
	}
	return c, nil
}
