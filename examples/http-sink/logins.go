package main

import (
	"errors"

	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/outbound"
	"github.com/numaproj-contrib/numathrottle/internal/config"
)

func (s *settings) basicPassword() outbound.Credential {
	return s.credential(s.BasicPassword, s.BasicPasswordFile)
}

func (s *settings) bearerToken() outbound.Credential {
	return s.credential(s.BearerToken, s.BearerTokenFile)
}

func (s *settings) apiKey() outbound.Credential { return s.credential(s.APIKey, s.APIKeyFile) }
func (s *settings) oauthSecret() outbound.Credential {
	return s.credential(s.OAuthSecret, s.OAuthSecretFile)
}

func (s *settings) awsSecretKey() outbound.Credential {
	return s.credential(s.AWSSecretKey, s.AWSSecretKeyFile)
}

func (s *settings) awsSessionToken() outbound.Credential {
	return s.credential(s.AWSSessionToken, s.AWSSessionTokenFile)
}

func (s *settings) signatureKey() outbound.Credential {
	return s.credential(s.SignatureKey, s.SignatureKeyFile)
}

// checkLogin refuses a second way to log in.
func (s *settings) checkLogin(bad complaint) {
	first := ""
	for _, way := range []struct {
		key string
		is  bool
	}{
		{"basicUsername", s.BasicUsername != ""},
		{"bearerToken", s.bearerToken().IsSet()},
		{"oauthTokenURL", s.OAuthTokenURL != ""},
		{"jwtKeyFile", s.JWTKeyFile != ""},
		{"signature: aws-sigv4", s.Signature == awsSignature},
	} {
		switch {
		case way.is && first != "":
			bad(way.key, "is set, and so is "+first, "one way to log in")
		case way.is:
			first = way.key
		}
	}
}

// checkSecrets finds secrets that cannot be read or sent.
func (s *settings) checkSecrets(bad complaint) {
	for _, c := range []struct {
		key    string
		secret outbound.Credential
		header bool // its text becomes the value of a header
	}{
		{"basicPassword", s.basicPassword(), false},
		{"bearerToken", s.bearerToken(), true},
		{"apiKey", s.apiKey(), true},
		{"oauthSecret", s.oauthSecret(), false},
		{"signatureKey", s.signatureKey(), false},
		{"awsSecretKey", s.awsSecretKey(), false},
		{"awsSessionToken", s.awsSessionToken(), true},
	} {
		text, err := c.secret.ReadRaw()
		if err != nil {
			fault := config.SecretFileFault(c.key+"File", c.secret.File, err)
			bad(fault.Field, fault.Problem, fault.Allowed)
		} else if problem := config.HeaderProblem(text); c.header && problem != "" {
			bad(orFile(c.key, c.secret.File), problem, "visible ASCII, with spaces only between")
		}
	}
	if s.JWTKeyFile != "" {
		s.checkJWT(bad)
	}
	if s.signer() != nil && s.signatureKey().IsSet() {
		if err := s.signer().CheckKey(); errors.Is(err, outbound.ErrBadKey) {
			bad(orFile("signatureKey", s.SignatureKeyFile), err.Error(), outbound.AllowedKey(s.Signature == standardWebhooks))
		}
	}
}

// checkJWT finds a key that cannot sign.
func (s *settings) checkJWT(bad complaint) {
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
