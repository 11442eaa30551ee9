package listen

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// MinTokenBytes is the minimum length of a token for addresses that strangers can reach. Shorter ones can be guessed.
const MinTokenBytes = 16

// A Token is the token that callers need. The zero Token requires nothing. Printing one shows no secret. It is safe for concurrent use.
type Token struct {
	sum  [sha256.Size]byte
	set  bool
	file *tokenFile // the source of sum, which is reread; nil: none
}

// NewToken returns the Token for a text; an empty text requires nothing.
func NewToken(text string) Token {
	if text == "" {
		return Token{}
	}
	return Token{sum: sha256.Sum256([]byte(text)), set: true}
}

// Set reports whether callers need the token.
func (t Token) Set() bool { return t.set }

// Lets is Matches for a request with context ctx, and lets the connection of a match last.
func (t Token) Lets(ctx context.Context, values []string) bool {
	if !t.Matches(values) {
		return false
	}
	Admit(ctx)
	return true
}

// Matches reports whether one of a header's values contains the token: as "Bearer TOKEN", or as the password of "Basic", as HTTP clients
// log in to a proxy.
func (t Token) Matches(values []string) bool {
	if !t.set {
		return true
	}
	want, ok := t.current()
	if !ok {
		return false
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
		if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 {
			return true
		}
	}
	return false
}

// Sum returns the SHA-256 of the current token. ok is false if there is none.
func (t Token) Sum() (sum [sha256.Size]byte, ok bool) {
	if !t.set {
		return sum, false
	}
	return t.current()
}

func (t Token) current() (sum [sha256.Size]byte, ok bool) {
	if t.file == nil {
		return t.sum, true
	}
	return t.file.current()
}

// String reports whether a token is set.
func (t Token) String() string {
	if t.set {
		return "(set, not shown)"
	}
	return "none"
}
