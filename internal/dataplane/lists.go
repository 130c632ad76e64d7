package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A listItem is an item of a field list: a field or a constant.
type listItem struct {
	f vector.Field
	// skip marks a constant. Copies between packets ignore it.
	skip bool
}

// A learnList describes the content of a digest.
type learnList struct {
	name   string
	id     int
	fields []vector.Field
	buf    []byte
}

// A Digest is one record of a learn list: its fields in order, each in whole
// bytes.
type Digest struct {
	List string
	ID   int
	Data []byte
}

// maxListID bounds the ids of field lists, which BMv2 keeps in 16 bits.
const maxListID = 1<<16 - 1

func (s *Switch) lists(c *bmv2.Config) error {
	for _, src := range c.FieldLists {
		if src.ID < 0 || src.ID > maxListID {
			return fmt.Errorf("field list %s: id %d is outside 0..%d", src.Name, src.ID, maxListID)
		}
		var items []listItem
		for _, e := range src.Elements {
			if e.Type == bmv2.TypeHexstr {
				items = append(items, listItem{skip: true})
				continue
			}
			f, err := s.listField(e)
			if err != nil {
				return fmt.Errorf("field list %s: %w", src.Name, err)
			}
			items = append(items, listItem{f: f})
		}
		for len(s.fieldLists) <= src.ID {
			s.fieldLists = append(s.fieldLists, nil)
		}
		s.fieldLists[src.ID] = items
	}
	for _, src := range c.LearnLists {
		if src.ID < 0 || src.ID > maxListID {
			return fmt.Errorf("learn list %s: id %d is outside 0..%d", src.Name, src.ID, maxListID)
		}
		list := &learnList{name: src.Name, id: src.ID}
		for _, e := range src.Elements {
			f, err := s.listField(e)
			if err != nil {
				return fmt.Errorf("learn list %s: %w", src.Name, err)
			}
			list.fields = append(list.fields, f)
		}
		for len(s.learnLists) <= src.ID {
			s.learnLists = append(s.learnLists, nil)
		}
		s.learnLists[src.ID] = list
	}
	return nil
}

func (s *Switch) listField(e *bmv2.Expr) (vector.Field, error) {
	if e.Type != bmv2.TypeField {
		return vector.Field{}, fmt.Errorf("%v is not a field", e)
	}
	return s.prog.Layout.Field(e.Name, e.Field)
}

// copyList copies the fields of a list to another packet.
func (s *Switch) copyList(dst, src *Packet, id uint16) {
	if int(id) >= len(s.fieldLists) {
		return
	}
	for _, it := range s.fieldLists[id] {
		if !it.skip {
			copy(dst.st.W[it.f.Off:it.f.Off+it.f.Words()], src.st.W[it.f.Off:])
		}
	}
}

// learn reports a digest.
func (s *Switch) learn(p *Packet, id uint16) {
	if int(id) >= len(s.learnLists) || s.learnLists[id] == nil {
		return
	}
	list := s.learnLists[id]
	if s.opts.Trace != nil {
		s.prog.Trace(&p.st, Event{Kind: EventDigest, Name: list.name})
	}
	if s.opts.Digest == nil {
		return
	}
	list.buf = list.buf[:0]
	for _, f := range list.fields {
		n := num.Bytes(f.Width)
		for range n {
			list.buf = append(list.buf, 0)
		}
		num.PutBytes(list.buf[len(list.buf)-n:], p.st.W[f.Off:f.Off+f.Words()])
		if f.Width%8 != 0 {
			list.buf[len(list.buf)-n] &= byte(num.Mask64(f.Width % 8))
		}
	}
	s.opts.Digest(Digest{List: list.name, ID: list.id, Data: list.buf})
}

// DigestWidths returns the widths in bits of the fields of a learn list.
func (s *Switch) DigestWidths(list string) ([]int, error) {
	for _, l := range s.learnLists {
		if l == nil || l.name != list {
			continue
		}
		return lists.Map(l.fields, func(f vector.Field) int { return f.Width }), nil
	}
	return nil, fmt.Errorf("unknown learn list %q", list)
}
