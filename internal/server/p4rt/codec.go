package p4rt

import (
	"sync"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/encoding"
	encproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A codec encodes pipeline configs without copying the program. Answers share
// its bytes and the encoded P4Info: a program may have 64 MiB, and gRPC keeps
// an encoded answer until the client has received it. Other messages use the
// default codec.
type codec struct {
	encoding.CodecV2

	mu   sync.Mutex
	info *configv1.P4Info // the P4Info encoded last
	text []byte
}

func newCodec() *codec { return &codec{CodecV2: encoding.GetCodecV2(encproto.Name)} }

// Field numbers of GetForwardingPipelineConfigResponse and
// ForwardingPipelineConfig.
const (
	configField       = 1
	p4InfoField       = 1
	deviceConfigField = 2
)

func (c *codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*p4v1.GetForwardingPipelineConfigResponse)
	if !ok || m.GetConfig() == nil {
		return c.CodecV2.Marshal(v)
	}
	return c.config(m.GetConfig())
}

// config encodes a pipeline config: the cookie first, then the shared parts.
func (c *codec) config(m *p4v1.ForwardingPipelineConfig) (mem.BufferSlice, error) {
	head, err := proto.Marshal(&p4v1.ForwardingPipelineConfig{Cookie: m.GetCookie()})
	if err != nil {
		return nil, err
	}
	list := mem.BufferSlice{mem.SliceBuffer(head)}
	add := func(field protowire.Number, text []byte) {
		if len(text) > 0 {
			head := protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.BytesType), uint64(len(text)))
			list = append(list, mem.SliceBuffer(head), mem.SliceBuffer(text))
		}
	}
	if m.GetP4Info() != nil {
		text, err := c.encoded(m.GetP4Info())
		if err != nil {
			return nil, err
		}
		add(p4InfoField, text)
	}
	add(deviceConfigField, m.GetP4DeviceConfig())
	whole := protowire.AppendTag(nil, configField, protowire.BytesType)
	whole = protowire.AppendVarint(whole, uint64(list.Len()))
	return append(mem.BufferSlice{mem.SliceBuffer(whole)}, list...), nil
}

// encoded returns the encoding of a P4Info. It is cached, because a P4Info
// never changes.
func (c *codec) encoded(m *configv1.P4Info) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.info == m {
		return c.text, nil
	}
	text, err := proto.Marshal(m)
	if err == nil {
		c.info, c.text = m, text
	}
	return text, err
}
