package sim

import (
	"encoding/binary"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// control is the contents of a packet without a flow, when switches run models.
type control struct {
	form   form
	report model.Report
	notice model.Notice
	hold   model.Time
	hops   int // number of further switches that a notice travels to
	probe  model.Probe
	path   pathProbe
	woven  *woven // the ConWeave header or answer
}

// A form is a type of packet that switches or the controller create.
type form uint8

const (
	noForm form = iota
	reportForm
	noticeForm
	probeForm
	pathForm
	wovenForm
)

// A pathProbe measures a path to a leaf and returns.
type pathProbe struct {
	src, dst    uint16
	path, flags uint8
	sent        model.Time
}

// Flags of a path probe.
const (
	probeReply  = 1
	probeMarked = 2
)

// A woven is the ConWeave header of a data packet, or the contents of a ConWeave answer.
type woven struct {
	model.WovenHeader
	hop    int // number of switches that have forwarded by the path so far
	answer wovenAnswer
	flow   model.Flow // in an answer: the flow that it answers
	from   *Switch    // in an answer: the switch that sent it
}

// carriesWoven is the queue number of a packet with a ConWeave header. No port has a queue of
// this number.
const carriesWoven = 255

// A wovenAnswer is an answer from the leaf of the destination to the leaf of the source.
type wovenAnswer int

const (
	rttReply wovenAnswer = iota
	clearing
	notify
)

// EtherTypes of packets and headers that schemes define.
const (
	typeNotice = 0x88B5
	typeProbe  = 0x88B6
	typePath   = 0x88B7
)

// readControl reads the packets that a controller sends: probes of DHLB or of
// HULA, with the fields of hardware or of a software switch.
func readControl(b []byte, degree, hardware bool) (c control, ok bool) {
	if len(b) < ethernetLen {
		return c, false
	}
	body := b[ethernetLen:]
	switch binary.BigEndian.Uint16(b[12:]) {
	case typeProbe:
		c.form = probeForm
		if hardware {
			return readHardwareProbe(body, degree)
		}
		if degree && len(body) >= 5 {
			c.probe = model.Probe{Origin: int(body[0]), Seq: binary.BigEndian.Uint16(body[1:]), Degree: body[3], Hop: body[4]}
			return c, true
		}
		if !degree && len(body) >= 6 {
			c.probe = model.Probe{Origin: int(binary.BigEndian.Uint16(body)), Util: binary.BigEndian.Uint32(body[2:])}
			return c, true
		}
	case typePath:
		if len(body) >= 10 {
			c.form = pathForm
			if hardware {
				c.path = pathProbe{src: binary.BigEndian.Uint16(body), dst: binary.BigEndian.Uint16(body[2:]), path: body[4], flags: body[5]}
				return c, true
			}
			leaves := uint16(body[1])
			c.path = pathProbe{src: uint16(body[0])<<4 | leaves>>4, dst: leaves&15<<8 | uint16(body[2]), path: body[3] >> 4, flags: body[3] & 15}
			return c, true
		}
	}
	return c, false
}

// readHardwareProbe reads a probe for Tofino: the origin in 16 bits, then HULA's
// utilisation in 16, or DHLB's number in 16, degree in 32 and hops in 8.
func readHardwareProbe(body []byte, degree bool) (c control, ok bool) {
	switch {
	case degree && len(body) >= 9:
		c.probe = model.Probe{Degree: body[7], Hop: body[8]}
	case !degree && len(body) >= 4:
		c.probe = model.Probe{Util: uint32(binary.BigEndian.Uint16(body[2:]))}
	default:
		return c, false
	}
	c.form, c.probe.Origin = probeForm, int(binary.BigEndian.Uint16(body))
	return c, true
}
