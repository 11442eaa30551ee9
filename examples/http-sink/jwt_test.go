package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// privateKey returns a key in PEM, PKCS #8.
func privateKey(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// claimsOf verifies a token and returns its claims.
func claimsOf(t *testing.T, text string, public crypto.PublicKey, method string) (jwt.MapClaims, map[string]any) {
	t.Helper()
	claims := jwt.MapClaims{}
	parsed, err := jwt.ParseWithClaims(text, claims, func(*jwt.Token) (any, error) { return public, nil },
		jwt.WithValidMethods([]string{method}), jwt.WithExpirationRequired())
	require.NoError(t, err)
	return claims, parsed.Header
}

func TestAJWTIsSent(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	for method, key := range map[string]crypto.Signer{"RS256": small, "ES384": curve, "EdDSA": edwards} {
		t.Run(method, func(t *testing.T) {
			service := startService(t, nil)
			path := file(t, "key.pem", privateKey(t, key))
			r := start(t, env{
				"URL": service.URL, "JWT_KEY_FILE": path, "JWT_KEY_ID": "k1", "JWT_ISSUER": "me", "JWT_SUBJECT": "them",
				"JWT_AUDIENCE": "there", "JWT_SCOPES": "a b", "JWT_CLAIMS": `{"tenant":"acme","n":[1],"iss":"another"}`, "JWT_LIFETIME": "2m",
			})
			require.Equal(t, all(2, dataplane.SinkSuccess), statuses(r.do(messages("a", "b")...)))
			requests := service.Requests()
			header := requests[0].Header.Get("Authorization")
			require.Equal(t, header, requests[1].Header.Get("Authorization"), "one token for many requests")
			text, ok := strings.CutPrefix(header, "Bearer ")
			require.True(t, ok)
			claims, head := claimsOf(t, text, key.Public(), method)
			require.Equal(t, "k1", head["kid"])
			for name, want := range map[string]any{"iss": "me", "sub": "them", "aud": "there", "scope": "a b", "tenant": "acme", "n": []any{1.0}} {
				require.Equal(t, want, claims[name], name)
			}
			require.NotEmpty(t, claims["jti"])
			issued, err := claims.GetIssuedAt()
			require.NoError(t, err)
			ends, err := claims.GetExpirationTime()
			require.NoError(t, err)
			require.Equal(t, 2*time.Minute, ends.Sub(issued.Time))
		})
	}
}

// After a 401 another token is signed, with the key that is in the file by then.
func TestAJWTThatIsRefusedIsSignedAnew(t *testing.T) {
	_, old, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	public, current, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	path := file(t, "key.pem", privateKey(t, old))
	service := startService(t, func(w http.ResponseWriter, _ seen, n int) {
		if n == 2 {
			_ = os.WriteFile(path, []byte(privateKey(t, current)), 0o600)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	r := start(t, env{"URL": service.URL, "JWT_KEY_FILE": path, "MAX_ATTEMPTS": "2"})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("b")...)))
	requests := service.Requests()
	require.Len(t, requests, 3)
	claimsOf(t, strings.TrimPrefix(requests[2].Header.Get("Authorization"), "Bearer "), public, "EdDSA")
}

func TestAJWTIsExchanged(t *testing.T) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	tokens := startService(t, func(w http.ResponseWriter, _ seen, n int) {
		if n == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, canary)
	})
	service := startService(t, nil)
	r := start(t, env{
		"URL": service.URL, "JWT_KEY_FILE": file(t, "key.pem", privateKey(t, key)), "JWT_ISSUER": "me", "JWT_SCOPES": "a b",
		"JWT_TOKEN_URL": tokens.URL + "/token",
	})
	require.Equal(t, all(3, dataplane.SinkSuccess), statuses(r.do(messages("a", "b", "c")...)))
	require.Len(t, tokens.Requests(), 2, "one token for all, once the endpoint gives one")
	for _, request := range service.Requests() {
		require.Equal(t, "Bearer "+canary, request.Header.Get("Authorization"))
	}
	form, err := url.ParseQuery(tokens.Requests()[1].Body)
	require.NoError(t, err)
	require.Equal(t, "urn:ietf:params:oauth:grant-type:jwt-bearer", form.Get("grant_type"))
	require.Equal(t, "a b", form.Get("scope"))
	require.Empty(t, tokens.Requests()[1].Header.Get("Authorization"))
	claims, _ := claimsOf(t, form.Get("assertion"), public, "EdDSA")
	require.Equal(t, tokens.URL+"/token", claims["aud"])
	require.NotContains(t, r.log.String(), form.Get("assertion"))
}

func TestKeysOfJWTsThatAreRefused(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	for _, content := range []string{
		canary, "", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), privateKey(t, curve),
		"-----BEGIN PRIVATE KEY-----\n" + canary + "\n-----END PRIVATE KEY-----\n",
	} {
		_, err = loaded(t, env{"URL": "http://h", "JWT_KEY_FILE": file(t, "key.pem", content)})
		require.ErrorContains(t, withoutSources(err),
			"jwtKeyFile holds no private key in PEM of RSA, ECDSA or Ed25519 (not shown), allowed: a private key in PEM")
		require.NotContains(t, err.Error(), canary)
	}
	_, err = loaded(t, env{
		"URL": "http://h", "JWT_KEY_FILE": "/nowhere/key", "BEARER_TOKEN": canary, "JWT_CLAIMS": "[1]", "JWT_LIFETIME": "1s",
		"JWT_TOKEN_URL": "http://10.0.0.1",
	})
	for _, want := range []string{
		"jwtKeyFile is \"/nowhere/key\", which cannot be used", "jwtKeyFile is set, and so is bearerToken", `jwtClaims is "[1]"`, `jwtLifetime is "1s"`,
		"jwtTokenURL names a host that",
	} {
		require.ErrorContains(t, err, want)
	}
	t.Setenv("HTTP_SINK_JWT_KEY_FILE", "")
	require.NoError(t, os.Unsetenv("HTTP_SINK_JWT_KEY_FILE"))
	_, err = loaded(t, env{"URL": "http://h", "JWT_ISSUER": "x", "JWT_CLAIMS": "{}", "JWT_LIFETIME": "5m"})
	require.ErrorContains(t, err, "jwtIssuer is set without jwtKeyFile (HTTP_SINK_JWT_ISSUER), allowed: both or none")
}
