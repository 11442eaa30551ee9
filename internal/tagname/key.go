package tagname

import (
	"crypto/sha256"
	"encoding/binary"
)

// OtherKey is the key of the tag "", which is all tags without a quota of their own: the first 8 bytes of SHA-256("other"). No name has it
// by design, because a name is hashed after "tag" and a zero byte.
const OtherKey uint64 = 0xd9298a10d1b07358

// Key returns the 64-bit key of a tag, the same in every process. It is the first 8 bytes, in big-endian order, of SHA-256 over "tag", a
// zero byte and the name. It is never 0. The key of "" is OtherKey.
func Key(name string) uint64 {
	if name == "" {
		return OtherKey
	}
	return max(1, firstBytes("tag\x00"+name))
}

func firstBytes(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:8])
}
