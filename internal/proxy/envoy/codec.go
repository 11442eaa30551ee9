package envoy

import (
	"unicode/utf8"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that a codec is around
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A codec also reads requests with invalid UTF-8. Envoy forwards the headers of its clients unchanged, and lets a request pass if it cannot
// be read.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	r, ok := v.(*ratelimit.RateLimitRequest)
	if err == nil || !ok {
		return err
	}
	raw := data.Materialize()
	requestTexts.mend(raw)
	if proto.Unmarshal(raw, r) != nil {
		return err
	}
	return nil
}

// texts describes the text fields of a message: nil for a text, else the fields of a submessage.
type texts map[protowire.Number]texts

var requestTexts = texts{1: nil, 2: {1: {1: nil, 2: nil}}} // domain, and the key and value of each entry of each descriptor

// mend replaces each byte of invalid UTF-8 by a control character. Such a tag has no quota of its own.
func (t texts) mend(raw []byte) {
	for len(raw) > 0 {
		num, typ, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return
		}
		raw = raw[n:]
		if n = protowire.ConsumeFieldValue(num, typ, raw); n < 0 {
			return
		}
		if inside, known := t[num]; known && typ == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(raw)
			if inside == nil {
				mendText(value)
			} else {
				inside.mend(value)
			}
		}
		raw = raw[n:]
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
