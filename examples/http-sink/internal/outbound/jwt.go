package outbound

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// A JWT configures a login with a JSON Web Token that is signed with a private key: the token itself is sent, or exchanged for another one.
type JWT struct {
	// Key is a private key in PEM: RSA (which signs by RS256), ECDSA (ES256, ES384, ES512) or Ed25519 (EdDSA).
	Key program.Credential
	// KeyID, Issuer, Subject and Audience are kid, iss, sub and aud; empty ones are omitted.
	KeyID, Issuer, Subject, Audience string
	// Scopes are the claim scope, and the parameter scope of an exchange.
	Scopes []string
	// Claims are further claims, a JSON object or nothing.
	Claims string
	// Lifetime is how long a token signed here is valid.
	Lifetime time.Duration
	// TokenURL is the endpoint for exchanges by RFC 7523, section 2.1; empty: the token itself is sent.
	TokenURL string
	// Timeout bounds one exchange, including its response.
	Timeout time.Duration
	// Reported is as in ClientCredentials.
	Reported func(err error)
}

const (
	// jwtEarly is how long before its expiry a token is replaced.
	jwtEarly = 30 * time.Second
	// jwtSkew is how far a token's issue time is set back, for servers whose clocks are behind.
	jwtSkew = 10 * time.Second
)

// Login returns the login. It keeps a token until shortly before its expiry, rereads the key for each, and asks an endpoint as OAuth2 does,
// through base.
func (j JWT) Login(base http.RoundTripper) *TokenLogin {
	login := &TokenLogin{early: jwtEarly, secret: j.Key, reported: j.Reported, fetch: j.sign}
	if j.TokenURL != "" {
		client := newTokenClient(base, j.Timeout)
		login.fetch = func(key string) (*token, *refusal) { return j.exchange(client, key) }
	}
	return login
}

// ErrBadJWTKey is the error for a readable key that cannot be used.
var ErrBadJWTKey = errors.New("holds no private key in PEM of RSA, ECDSA or Ed25519 (not shown)")

// CheckKey checks whether the key can be read and signs. The error contains nothing of it.
func (j JWT) CheckKey() error {
	text, err := j.Key.Read()
	if err != nil {
		return err
	}
	_, _, err = parsePrivateKey(text)
	return err
}

// sign makes a token. A refusal concerns the key.
func (j JWT) sign(key string) (*token, *refusal) {
	text, expiry, err := j.signed(key, time.Now())
	if err != nil {
		return nil, &refusal{err: err, unread: true}
	}
	return &token{kind: "Bearer", text: text, expiry: expiry}, nil
}

func (j JWT) signed(key string, now time.Time) (text string, expiry time.Time, err error) {
	private, method, err := parsePrivateKey(key)
	if err != nil {
		return "", expiry, errors.New("the file of jwtKeyFile " + err.Error())
	}
	made := now.Add(-jwtSkew)
	expiry = made.Add(j.Lifetime)
	claims := jwt.MapClaims{}
	if j.Claims != "" {
		var more map[string]any
		if err := json.Unmarshal([]byte(j.Claims), &more); err != nil {
			return "", expiry, errors.New("jwtClaims is no JSON object")
		}
		maps.Copy(claims, more)
	}
	for name, value := range map[string]string{"iss": j.Issuer, "sub": j.Subject, "aud": j.Audience, "scope": strings.Join(j.Scopes, " ")} {
		if value != "" {
			claims[name] = value
		}
	}
	claims["iat"], claims["exp"], claims["jti"] = made.Unix(), expiry.Unix(), rand.Text()
	t := jwt.NewWithClaims(method, claims)
	if j.KeyID != "" {
		t.Header["kid"] = j.KeyID
	}
	if text, err = t.SignedString(private); err != nil {
		return "", expiry, errors.New("the key of jwtKeyFile does not sign")
	}
	return text, expiry, nil
}

// exchange signs a token and asks for another one with it.
func (j JWT) exchange(client *http.Client, key string) (*token, *refusal) {
	assertion, refused := j.sign(key)
	if refused != nil {
		return nil, refused
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion.text}}
	if len(j.Scopes) > 0 {
		form.Set("scope", strings.Join(j.Scopes, " "))
	}
	return postForm(client, j.TokenURL, form, nil)
}

// parsePrivateKey parses a private key in PEM, and returns its signing method. The error is ErrBadJWTKey.
func parsePrivateKey(text string) (crypto.PrivateKey, jwt.SigningMethod, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, nil, ErrBadJWTKey
	}
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if private, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			if private, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
				return nil, nil, ErrBadJWTKey
			}
		}
	}
	switch key := private.(type) {
	case *rsa.PrivateKey:
		return key, jwt.SigningMethodRS256, nil
	case ed25519.PrivateKey:
		return key, jwt.SigningMethodEdDSA, nil
	case *ecdsa.PrivateKey:
		switch key.Curve.Params().BitSize {
		case jwt.SigningMethodES256.CurveBits:
			return key, jwt.SigningMethodES256, nil
		case jwt.SigningMethodES384.CurveBits:
			return key, jwt.SigningMethodES384, nil
		case jwt.SigningMethodES512.CurveBits:
			return key, jwt.SigningMethodES512, nil
		}
	}
	return nil, nil, ErrBadJWTKey
}
