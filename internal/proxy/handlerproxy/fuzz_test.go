package handlerproxy

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// Whatever bytes a message is, reading it neither fails nor changes what is not asked for; what is set can be read again.
func FuzzWire(f *testing.F) {
	inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "k")
	entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), "v")
	f.Add(protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), inner), int32(3), uint64(7))
	f.Add(protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), entry), int32(4), uint64(1<<63))
	f.Add(protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 5), int32(1), uint64(0))
	f.Add([]byte{0x0b, 0x0c}, int32(1), uint64(1))
	f.Add([]byte{0xff, 0xff, 0xff}, int32(1), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, n int32, value uint64) {
		num := protowire.Number(n)
		if !num.IsValid() {
			return
		}
		was := bytes.Clone(b)
		valid := each(b, func(field) {}) == nil
		_, _ = last(b, num)
		_, _, _ = all(b, num), number(b, num), flagged(b, num)
		_ = texts(b, num)
		less := without(b, num)
		require.NoError(t, each(less, func(f field) { require.NotEqual(t, num, f.num) }))
		set := setNumber(b, num, value)
		require.Equal(t, value, number(set, num))
		message := setMessage(b, num, was)
		got, ok := last(message, num)
		require.True(t, ok)
		require.True(t, bytes.Equal(was, got))
		require.Equal(t, without(less, num), without(set, num), "every other field stays")
		require.Equal(t, was, b, "what was handed in stays as it is")
		if valid {
			var whole []byte
			require.NoError(t, each(b, func(f field) { whole = append(whole, f.whole...) }))
			require.True(t, bytes.Equal(b, whole))
		}
	})
}
