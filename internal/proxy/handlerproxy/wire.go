package handlerproxy

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// A field is one field of an encoded message.
type field struct {
	num protowire.Number
	typ protowire.Type
	// value is the content without tag and length; for a number, its encoding.
	value []byte
	// whole is the field with its tag.
	whole []byte
}

var errMalformed = errors.New("handlerproxy: a message is no protocol buffer")

// next splits the first field off b.
func next(b []byte) (f field, rest []byte, err error) {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return f, nil, errMalformed
	}
	m := protowire.ConsumeFieldValue(num, typ, b[n:])
	if m < 0 {
		return f, nil, errMalformed
	}
	f = field{num: num, typ: typ, value: b[n : n+m], whole: b[:n+m]}
	if typ == protowire.BytesType {
		f.value, _ = protowire.ConsumeBytes(b[n:])
	}
	return f, b[n+m:], nil
}

// each calls do with every field of b, in order.
func each(b []byte, do func(f field)) error {
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		do(f)
		b = rest
	}
	return nil
}

// last returns the content of a field that holds a text, bytes or a message. Of several the last counts, as in the format.
func last(b []byte, num protowire.Number) (value []byte, ok bool) {
	_ = each(b, func(f field) {
		if f.num == num && f.typ == protowire.BytesType {
			value, ok = f.value, true
		}
	})
	return value, ok
}

// all returns the contents of a repeated field of texts, bytes or messages.
func all(b []byte, num protowire.Number) (values [][]byte) {
	_ = each(b, func(f field) {
		if f.num == num && f.typ == protowire.BytesType {
			values = append(values, f.value)
		}
	})
	return values
}

// number returns the content of a field that holds an integer or a boolean; 0 without it.
func number(b []byte, num protowire.Number) (n uint64) {
	_ = each(b, func(f field) {
		if f.num == num && f.typ == protowire.VarintType {
			n, _ = protowire.ConsumeVarint(f.value)
		}
	})
	return n
}

// flagged reports whether the message in field num of b has a true first field: a handshake or an end-of-transmission mark.
func flagged(b []byte, num protowire.Number) bool {
	inner, ok := last(b, num)
	return ok && number(inner, 1) != 0
}

// without returns b without its fields num.
func without(b []byte, num protowire.Number) []byte {
	out := make([]byte, 0, len(b))
	_ = each(b, func(f field) {
		if f.num != num {
			out = append(out, f.whole...)
		}
	})
	return out
}

// setNumber returns b with the field num set to n; every other field stays.
func setNumber(b []byte, num protowire.Number, n uint64) []byte {
	out := protowire.AppendTag(without(b, num), num, protowire.VarintType)
	return protowire.AppendVarint(out, n)
}

// setMessage returns b with the field num set to an encoded message; every other field stays.
func setMessage(b []byte, num protowire.Number, inner []byte) []byte {
	out := protowire.AppendTag(without(b, num), num, protowire.BytesType)
	return protowire.AppendBytes(out, inner)
}

// texts returns the entries of a map from text to text.
func texts(b []byte, num protowire.Number) map[string]string {
	entries := all(b, num)
	if len(entries) == 0 {
		return nil
	}
	out := make(map[string]string, len(entries))
	for _, e := range entries {
		key, _ := last(e, 1)
		value, _ := last(e, 2)
		out[string(key)] = string(value)
	}
	return out
}
