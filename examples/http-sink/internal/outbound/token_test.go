package outbound

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What token endpoints answer in the wild.
func TestTokensAreReadTolerantly(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for body, want := range map[string]struct {
		header string
		life   time.Duration // 0: unknown
	}{
		`{"access_token":"t","token_type":"bearer","expires_in":3600}`:       {"Bearer t", time.Hour},
		`{"access_token":"t","token_type":"BEARER","expires_in":3600.0}`:     {"Bearer t", time.Hour},
		`{"access_token":"t","token_type":"Bearer","expires_in":"3600"}`:     {"Bearer t", time.Hour},
		`{"access_token":"t","token_type":"Bearer","expires_in":" 3600.5 "}`: {"Bearer t", time.Hour + time.Second/2},
		`{"access_token":"t","expires_in":3.6e3}`:                            {"Bearer t", time.Hour},
		`{"access_token":"t"}`: {"Bearer t", 0},
		`{"access_token":"t","token_type":null,"expires_in":null}`:            {"Bearer t", 0},
		`{"access_token":"t","expires_in":0}`:                                 {"Bearer t", 0},
		`{"access_token":"t","expires_in":-1}`:                                {"Bearer t", 0},
		`{"access_token":"t","expires_in":"soon"}`:                            {"Bearer t", 0},
		`{"access_token":"t","expires_in":1e300}`:                             {"Bearer t", longestToken},
		`{"access_token":"t","expires_in":"NaN","scope":["a"],"x":{"y":[1]}}`: {"Bearer t", 0},
		"\ufeff{\"access_token\":\"t\",\"expires_in\":60}\r\n":                {"Bearer t", time.Minute},
		"\n  {\"access_token\":\"t\"}":                                        {"Bearer t", 0},
		`access_token=t&scope=repo%2Cgist&token_type=bearer`:                  {"Bearer t", 0},
		`access_token=t%2Bu&expires_in=3600.0&token_type=bearer`:              {"Bearer t+u", time.Hour},
		`{"access_token":"t","token_type":"DPoP"}`:                            {"DPoP t", 0},
		`{"access_token":"t","token_type":"mac"}`:                             {"MAC t", 0},
		`{"error":"","error_description":null,"access_token":"t"}`:            {"Bearer t", 0},
	} {
		got, code, err := parseToken([]byte(body), now)
		require.NoError(t, err, body)
		require.Empty(t, code, body)
		require.Equal(t, want.header, got.header(), body)
		life := time.Duration(0)
		if !got.expiry.IsZero() {
			life = got.expiry.Sub(now)
		}
		require.Equal(t, want.life, life, body)
	}
	for body, code := range map[string]string{
		`{"error":"invalid_client","error_description":"secret"}`: "invalid_client", `error=invalid_client&error_description=x`: "invalid_client",
		`{"error":"secret"}`: "an error of its own", `{"error":{"code":"invalid_scope","message":"secret"}}`: "invalid_scope",
		`{"error":{"message":"secret"}}`:                "an error of its own",
		`{"error":"invalid_client","access_token":"t"}`: "invalid_client",
		``: "", `{}`: "", `[]`: "", `null`: "", `<html>secret</html>`: "", `{"access_token":""}`: "", `{"access_token":"t`: "",
		`"access_token=t"`: "", `%zz`: "",
		`{"access_token":"a\nb"}`: "", `{"access_token":"é"}`: "", `{"access_token":"t","token_type":"a b"}`: "",
		`{"access_token":["t"]}`: "", `{"access_token":{"code":"t"}}`: "", `{"access_token":12}`: "",
	} {
		_, got, err := parseToken([]byte(body), now)
		require.Error(t, err, body)
		require.Equal(t, code, got, body)
		require.NotContains(t, err.Error()+(&refusal{status: 200, code: got, err: err}).Error(), "secret", body)
	}
}

// Anything that a server sends is read without a panic, and a token can stand in a header.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{`{"access_token":"t","expires_in":3600.0}`, "access_token=t", `{"error":{"code":1}}`, "\ufeff{", `{"expires_in":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, _, err := parseToken(body, time.Now())
		require.Equal(t, err == nil, got != nil)
		if got != nil {
			for _, r := range got.header() {
				require.True(t, r >= ' ' && r <= '~')
			}
		}
	})
}
