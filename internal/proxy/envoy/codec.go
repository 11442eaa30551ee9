package envoy

import (
	"bytes"
	"unicode/utf8"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that a codec is around
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A codec counts the items of a request before it decodes them, and also reads requests with invalid UTF-8. Envoy forwards the headers of
// its clients unchanged, and lets a request pass if it cannot be read.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Unmarshal implements encoding.CodecV2. A request with too many items becomes one with more items than read accepts, without their content.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*ratelimit.RateLimitRequest)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	raw := buf.ReadOnlyData()
	descriptors, entries := items(raw)
	switch {
	case descriptors > maxDescriptors:
		r.Descriptors = make([]*descriptor.RateLimitDescriptor, maxDescriptors+1)
		return nil
	case entries > maxEntries:
		r.Descriptors = []*descriptor.RateLimitDescriptor{{Entries: make([]*descriptor.RateLimitDescriptor_Entry, maxEntries+1)}}
		return nil
	}
	known := proto.UnmarshalOptions{DiscardUnknown: true}
	err := known.Unmarshal(raw, r)
	if err == nil {
		return nil
	}
	mended := bytes.Clone(raw)
	requestTexts.mend(mended)
	if known.Unmarshal(mended, r) != nil {
		return err
	}
	return nil
}

// items counts the descriptors of an encoded request, and their entries.
func items(raw []byte) (descriptors, entries int) {
	eachIn(raw, 2, func(d []byte) {
		descriptors++
		eachIn(d, 1, func([]byte) { entries++ })
	})
	return descriptors, entries
}

// eachIn calls do with the content of each field num of an encoded message, up to an invalid one.
func eachIn(raw []byte, num protowire.Number, do func(content []byte)) {
	for len(raw) > 0 {
		at, typ, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return
		}
		raw = raw[n:]
		if n = protowire.ConsumeFieldValue(at, typ, raw); n < 0 {
			return
		}
		if at == num && typ == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(raw)
			do(content)
		}
		raw = raw[n:]
	}
}

// texts describes the text fields of a message: nil for a text, else the fields of a submessage.
type texts map[protowire.Number]texts

var requestTexts = texts{1: nil, 2: {1: {1: nil, 2: nil}}} // domain, and the key and value of each entry of each descriptor

// mend replaces each byte of invalid UTF-8 by a control character. Such a tag has no quota of its own.
func (t texts) mend(raw []byte) {
	for num, inside := range t {
		eachIn(raw, num, func(content []byte) {
			if inside == nil {
				mendText(content)
			} else {
				inside.mend(content)
			}
		})
	}
}

func mendText(text []byte) {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			text[0] = 0x1a // substitute
		}
		text = text[n:]
	}
}
