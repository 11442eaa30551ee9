package main

import (
	"errors"

	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/outbound"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// A credential is one of the settings, whose text may become the value of a header.
type credential struct {
	key string
	*program.Credential

	inHeader bool
}

func (s *settings) credentials() []credential {
	return []credential{
		{"basicPassword", &s.BasicPassword, false},
		{"bearerToken", &s.BearerToken, true},
		{"apiKey", &s.APIKey, true},
		{"oauthSecret", &s.OAuthSecret, false},
		{"signatureKey", &s.SignatureKey, false},
		{"awsSecretKey", &s.AWSSecretKey, false},
		{"awsSessionToken", &s.AWSSessionToken, true},
	}
}

// checkLogin refuses a second way to log in.
func (s *settings) checkLogin(bad program.Complaint) {
	bad.OneOf("one way to log in", program.Given("basicUsername", s.BasicUsername != ""), program.Given("bearerToken", s.BearerToken.IsSet()),
		program.Given("oauthTokenURL", s.OAuthTokenURL != ""), program.Given("jwtKeyFile", s.JWTKeyFile != ""),
		program.Given("signature: aws-sigv4", s.Signature == awsSignature))
}

// checkSecrets finds secrets that cannot be read or sent.
func (s *settings) checkSecrets(bad program.Complaint) {
	for _, c := range s.credentials() {
		c.Check(c.key, c.inHeader, bad)
	}
	if s.JWTKeyFile != "" {
		s.checkJWT(bad)
	}
	if s.signer() != nil && s.SignatureKey.IsSet() {
		if err := s.signer().CheckKey(); errors.Is(err, outbound.ErrBadKey) {
			bad(s.SignatureKey.Key("signatureKey"), err.Error(), outbound.AllowedKey(s.Signature == standardWebhooks))
		}
	}
}

// checkJWT finds a key that cannot sign.
func (s *settings) checkJWT(bad program.Complaint) {
	j := s.jwt(nil)
	if _, err := j.Key.ReadRaw(); err != nil {
		fault := config.SecretFileFault("jwtKeyFile", s.JWTKeyFile, err)
		bad(fault.Field, fault.Problem, fault.Allowed)
		return
	}
	if err := j.CheckKey(); err != nil {
		bad("jwtKeyFile", err.Error(), "a private key in PEM, such as openssl genpkey makes")
	}
}
