package listen

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// A Token is what callers have to know. The zero Token asks for nothing. Printing one shows
// no secret. It may be used from any number of goroutines at once.
type Token struct {
	sum [sha256.Size]byte
	set bool
}

// NewToken returns the Token for a text; an empty text asks for nothing.
func NewToken(text string) Token {
	if text == "" {
		return Token{}
	}
	return Token{sum: sha256.Sum256([]byte(text)), set: true}
}

// Set tells whether callers need the token.
func (t Token) Set() bool { return t.set }

// Matches tells whether one of the values of a header brings the token: as "Bearer TOKEN",
// or as the password of "Basic", which is how HTTP clients log in to a proxy.
func (t Token) Matches(values []string) bool {
	if !t.set {
		return true
	}
	for _, value := range values {
		scheme, rest, _ := strings.Cut(value, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case strings.EqualFold(scheme, "Bearer"):
		case strings.EqualFold(scheme, "Basic"):
			pair, err := base64.StdEncoding.DecodeString(rest)
			if err != nil {
				continue
			}
			_, rest, _ = strings.Cut(string(pair), ":")
		default:
			continue
		}
		sum := sha256.Sum256([]byte(rest))
		if subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1 {
			return true
		}
	}
	return false
}

// String tells whether a token is set.
func (t Token) String() string {
	if t.set {
		return "(set, not shown)"
	}
	return "none"
}
