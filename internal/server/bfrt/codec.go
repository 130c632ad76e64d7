package server

import (
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// A codec encodes messages. It encodes the answer with the programs once for all
// clients, because the encoded form stays in memory until a client has read it.
type codec struct {
	encoding.CodecV2

	mu   sync.Mutex
	last *wire.GetForwardingPipelineConfigResponse // the source of text
	text []byte
}

func (c *codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*wire.GetForwardingPipelineConfigResponse)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != m {
		list, err := c.CodecV2.Marshal(m)
		if err != nil {
			return nil, err
		}
		c.last, c.text = m, list.Materialize()
		list.Free()
	}
	return mem.BufferSlice{mem.SliceBuffer(c.text)}, nil
}
