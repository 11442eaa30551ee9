package handlerproxy

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// A frame is an encoded gRPC message.
type frame struct{ raw []byte }

// rawCodec passes frames unchanged. It has the name of the codec that it replaces, since the name is part of the content type.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("handlerproxy: message is a %T, allowed: a frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.raw)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("handlerproxy: message is a %T, allowed: a frame", v)
	}
	f.raw = data.Materialize()
	return nil
}
