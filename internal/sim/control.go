package sim

import (
	"encoding/binary"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// control is the contents of a native packet without a flow.
type control struct {
	form   form
	report model.Report
	notice model.Notice
	hold   model.Time
	hops   int // switches that a notice goes on to
	probe  model.Probe
	path   pathProbe
	woven  *woven // with ConWeave
}

// A form is a packet that switches or the controller make.
type form uint8

const (
	noForm form = iota
	reportForm
	noticeForm
	probeForm
	pathForm
	wovenForm
)

// A pathProbe goes along a path to a leaf and back.
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

// A woven is what ConWeave adds to a packet: the header of data, or an answer.
type woven struct {
	model.WovenHeader
	hop    int // switches that have read the path
	answer wovenAnswer
	flow   model.Flow // of an answer: the data that it is about
	from   *Switch    // of an answer
}

// carriesWoven is the queue of a packet with a header of ConWeave, which no port has.
const carriesWoven = 255

// A wovenAnswer is an answer from the leaf of the destination to the leaf of the source.
type wovenAnswer int

const (
	rttReply wovenAnswer = iota
	clearing
	notify
)

// EtherTypes of what schemes put on the wire.
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
