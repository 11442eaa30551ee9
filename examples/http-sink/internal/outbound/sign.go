package outbound

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// A Signer signs requests with HMAC-SHA256 of their bodies, as they are sent.
type Signer struct {
	// Key is the secret.
	Key program.Credential
	// Header is the header for "sha256=" and the signature of the body, in hexadecimal. Empty means the headers of Standard Webhooks
	// (webhook-id, webhook-timestamp and webhook-signature), whose keys are base64, with or without the prefix "whsec_".
	Header string
}

// ErrBadKey is the error for a readable key that cannot be used.
var ErrBadKey = errors.New("is not base64 (not shown)")

// binaryKey is the prefix of a signature key in base64.
const binaryKey = "base64:"

// AllowedKey describes valid keys.
func AllowedKey(webhooks bool) string {
	if webhooks {
		return "base64, with or without whsec_ before it"
	}
	return "a text of one line, or " + binaryKey + " with the key in base64 behind it"
}

// CheckKey checks whether the key can be read and has the required form.
func (s *Signer) CheckKey() error {
	_, err := s.key()
	return err
}

// key returns the key as bytes. A text is its own bytes; other keys are given in base64.
func (s *Signer) key() ([]byte, error) {
	text, err := s.Key.Read()
	if err != nil {
		return nil, err
	}
	encoded, isEncoded := strings.CutPrefix(text, binaryKey)
	if s.Header == "" {
		encoded, isEncoded = strings.TrimPrefix(text, "whsec_"), true
	}
	if !isEncoded {
		return []byte(text), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, ErrBadKey
	}
	return key, nil
}

// A RequestSigner signs requests: a *Signer or a *SigV4.
type RequestSigner interface {
	// sign adds the signature of a request with its body. id identifies the request and is the same for all its attempts.
	sign(req *http.Request, id string, body []byte, now time.Time) error
}

// sign implements RequestSigner.
func (s *Signer) sign(req *http.Request, id string, body []byte, now time.Time) error {
	h := req.Header
	key, err := s.key()
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	if s.Header != "" {
		mac.Write(body)
		h.Set(s.Header, "sha256="+hex.EncodeToString(mac.Sum(nil)))
		return nil
	}
	at := strconv.FormatInt(now.Unix(), 10)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", at)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}
