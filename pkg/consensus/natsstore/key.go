package natsstore

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	escape       = '='
	hexDigits    = "0123456789ABCDEF"
	maxKeyBytes  = 200
	hashedPrefix = "=="
)

// keyOf returns the key of a pool: one subject token that is also a valid bucket key. Different names have different keys: the escape is
// itself escaped, and never occurs twice in a row in a key that is not a hash.
func keyOf(pool string) string {
	var key strings.Builder
	for i := range len(pool) {
		c := pool[i]
		// Keys that begin with "_kv" are the bucket's own.
		reserved := i == 0 && strings.HasPrefix(pool, "_kv")
		if isPlain(c) && !reserved {
			key.WriteByte(c)
		} else {
			key.Write([]byte{escape, hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	if key.Len() > maxKeyBytes {
		sum := sha256.Sum256([]byte(pool))
		return hashedPrefix + hex.EncodeToString(sum[:])
	}
	return key.String()
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '/'
}
