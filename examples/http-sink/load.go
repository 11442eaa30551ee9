package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/outbound"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/payload"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/render"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/verdict"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
	"github.com/numaproj-contrib/numathrottle/pkg/open"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// poolOf returns the settings of the pool.
func poolOf(s *settings) *numathrottle.Config { return &s.Pool }

// A complaint reports a fault of a setting.
type complaint func(field, problem, allowed string)

// loadSettings is readSettings with an error that has a line for every fault.
func loadSettings() (settings, error) {
	s, r := readSettings()
	return s, r.Err()
}

// readSettings reads the file in NUMATHROTTLE_CONFIG and the environment, and fills in the defaults. It finds every fault, including those
// of referenced files.
func readSettings() (settings, *config.Reading) {
	var s settings
	r := open.LoadWith(fields, poolOf, &s)
	bad := func(field, problem, allowed string) {
		r.Note(&config.FieldError{Field: field, Problem: problem, Allowed: allowed})
	}
	s.readFiles(bad)
	s.checkTemplates(bad)
	s.checkPairs(bad)
	s.checkLogin(bad)
	s.checkSecrets(bad)
	s.checkAddresses(bad)
	role := os.Getenv("NUMAFLOW_UD_CONTAINER_TYPE")
	s.checkRole(role, bad)
	s.separate(role)
	s.checkLimits(bad)
	s.checkMethod(bad)
	s.setDefaults()
	s.checkLayout(bad)
	return s, r
}

// readFiles reads the files that replace other settings.
func (s *settings) readFiles(bad complaint) {
	s.url, s.body, s.destKey = s.URL, s.Body, s.Destination
	if s.URLFile != "" {
		var err error
		if s.url, err = config.ReadSecretFile(s.URLFile); err != nil {
			fault := config.SecretFileFault("urlFile", s.URLFile, err)
			bad(fault.Field, fault.Problem, fault.Allowed)
		}
	}
	if s.BodyFile != "" {
		content, err := os.ReadFile(s.BodyFile)
		if err != nil {
			bad("bodyFile", fmt.Sprintf("is %q, which cannot be read: %v", s.BodyFile, errors.Unwrap(err)), "")
			return
		}
		s.body = strings.TrimRight(string(content), "\r\n")
	}
}

// checkTemplates finds invalid templates.
func (s *settings) checkTemplates(bad complaint) {
	if s.url != "" {
		if _, err := render.ParseURL(s.url); err != nil {
			bad(orFile("url", s.URLFile), err.Error(), "an http or https URL, a template behind its host")
		}
	} else if s.URLFile == "" {
		bad("url", "is not set", "an http or https URL, here or in urlFile")
	}
	if _, err := render.ParseText("body", s.body); err != nil {
		bad(orFile("body", s.BodyFile), err.Error(), "a template")
	}
	if _, err := render.ParseText("destination", s.Destination); err != nil {
		bad("destination", err.Error(), "a template")
	}
	if _, err := render.ParseHeaders(s.Headers); err != nil {
		for _, fault := range config.Split(err) {
			bad("headers", fault.Error(), "lines of Name: value")
		}
	}
	for key, names := range map[string][]string{
		"forwardHeaders": strings.Fields(s.ForwardHeaders), "apiKeyHeader": one(s.APIKeyHeader), "signatureHeader": one(s.SignatureHeader),
	} {
		for _, name := range names {
			if !render.ValidHeaderName(name) {
				bad(key, fmt.Sprintf("has %q", name), "names of headers")
			}
		}
	}
}

func one(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func orFile(key, file string) string {
	if file != "" {
		return key + "File"
	}
	return key
}

// checkPairs finds settings that contradict each other.
func (s *settings) checkPairs(bad complaint) {
	type set struct {
		key string
		is  bool
	}
	for _, pair := range [][2]set{
		{{"url", s.URL != ""}, {"urlFile", s.URLFile != ""}},
		{{"body", s.Body != ""}, {"bodyFile", s.BodyFile != ""}},
		{{"basicPassword", s.BasicPassword.IsSet()}, {"basicPasswordFile", s.BasicPasswordFile != ""}},
		{{"bearerToken", s.BearerToken.IsSet()}, {"bearerTokenFile", s.BearerTokenFile != ""}},
		{{"apiKey", s.APIKey.IsSet()}, {"apiKeyFile", s.APIKeyFile != ""}},
		{{"oauthSecret", s.OAuthSecret.IsSet()}, {"oauthSecretFile", s.OAuthSecretFile != ""}},
		{{"awsSecretKey", s.AWSSecretKey.IsSet()}, {"awsSecretKeyFile", s.AWSSecretKeyFile != ""}},
		{{"awsSessionToken", s.AWSSessionToken.IsSet()}, {"awsSessionTokenFile", s.AWSSessionTokenFile != ""}},
		{{"signatureKey", s.SignatureKey.IsSet()}, {"signatureKeyFile", s.SignatureKeyFile != ""}},
	} {
		if pair[0].is && pair[1].is {
			bad(pair[1].key, "is set, and so is "+pair[0].key, "one of them")
		}
	}
	needs := func(key string, is bool, other string, otherIs bool) {
		if is && !otherIs {
			bad(key, "is set without "+other, "both or none")
		}
	}
	aws := s.Signature == awsSignature
	for _, of := range []struct {
		key      string
		is       bool
		required bool
	}{
		{"awsAccessKeyID", s.AWSAccessKeyID != "", true},
		{"awsSecretKey or awsSecretKeyFile", s.awsSecretKey().IsSet(), true},
		{"awsSessionToken or awsSessionTokenFile", s.awsSessionToken().IsSet(), false},
		{"awsRegion", s.AWSRegion != "", true},
		{"awsService", s.AWSService != "", true},
	} {
		needs("signature: aws-sigv4", aws && of.required, of.key, of.is)
		needs(of.key, of.is, "signature: aws-sigv4", aws)
	}
	withKey := s.JWTKeyFile != ""
	for _, of := range []struct {
		key string
		is  bool
	}{
		{"jwtKeyID", s.JWTKeyID != ""},
		{"jwtIssuer", s.JWTIssuer != ""},
		{"jwtSubject", s.JWTSubject != ""},
		{"jwtAudience", s.JWTAudience != ""},
		{"jwtScopes", s.JWTScopes != ""},
		{"jwtClaims", s.JWTClaims != ""},
		{"jwtLifetime", s.JWTLifetime > 0},
		{"jwtTokenURL", s.JWTTokenURL != ""},
	} {
		needs(of.key, of.is, "jwtKeyFile", withKey)
	}
	signed := s.Signature != "" && s.Signature != noSignature && !aws
	key := s.signatureKey().IsSet()
	needs("signature", signed, "signatureKey or signatureKeyFile", key)
	needs("signatureKey or signatureKeyFile", key, "signature", signed)
	needs("signatureHeader", s.SignatureHeader != "", "signature: sha256", s.Signature == sha256Signature)
	needs("certFile", s.CertFile != "", "keyFile", s.KeyFile != "")
	needs("keyFile", s.KeyFile != "", "certFile", s.CertFile != "")
	needs("basicUsername", s.BasicUsername != "", "basicPassword or basicPasswordFile", s.basicPassword().IsSet())
	needs("basicPassword or basicPasswordFile", s.basicPassword().IsSet(), "basicUsername", s.BasicUsername != "")
	needs("apiKeyHeader", s.APIKeyHeader != "", "apiKey or apiKeyFile", s.apiKey().IsSet())
	needs("oauthTokenURL", s.OAuthTokenURL != "", "oauthClientID", s.OAuthClientID != "")
	needs("oauthTokenURL", s.OAuthTokenURL != "", "oauthSecret or oauthSecretFile", s.oauthSecret().IsSet())
	needs("oauthClientID", s.OAuthClientID != "", "oauthTokenURL", s.OAuthTokenURL != "")
	needs("oauthSecret or oauthSecretFile", s.oauthSecret().IsSet(), "oauthTokenURL", s.OAuthTokenURL != "")
	needs("separator", s.Separator != "", "format: raw", s.Format == payload.Raw)
	needs("query", s.Query == fieldsQuery, "method: GET", s.withoutBody())
	needs("dumpBytes", s.DumpBytes > 0, "dump: true", s.Dump)
	needs("maxRequests", s.MaxRequests > 0, "unit: messages or unit: bytes, beside which it counts", s.Unit == perMessage || s.Unit == perByte)
}

// checkAddresses refuses literal addresses that would be refused when dialled. Names are resolved only then.
func (s *settings) checkAddresses(bad complaint) {
	allow, err := dialguard.ParseAddresses(s.AllowAddresses)
	if err != nil || s.Proxy != "" { // it has a fault already, or the proxy dials
		return
	}
	check := func(key, host string) {
		if why := allow.Refuses(host); why != "" {
			bad(key, "names a host that "+why+", which is not dialled", "public addresses, and those of allowAddresses")
		}
	}
	if u, err := render.ParseURL(s.url); err == nil {
		check(orFile("url", s.URLFile), u.Hostname())
	}
	for key, text := range map[string]string{"oauthTokenURL": s.OAuthTokenURL, "jwtTokenURL": s.JWTTokenURL} {
		if u, err := url.Parse(text); err == nil {
			check(key, u.Hostname())
		}
	}
}

// checkMethod refuses settings that need a body if there is none.
func (s *settings) checkMethod(bad complaint) {
	if !s.withoutBody() {
		return
	}
	for _, of := range []struct {
		key string
		is  bool
	}{
		{"body", s.Body != ""},
		{"bodyFile", s.BodyFile != ""},
		{"bodyPrefix", s.BodyPrefix != ""},
		{"bodySuffix", s.BodySuffix != ""},
		{"contentType", s.ContentType != ""},
		{"compression", s.Compression != "" && s.Compression != payload.None},
		{"format", s.Format != "" && s.Format != payload.Single},
		{"signature", s.Signature != "" && s.Signature != noSignature && s.Signature != awsSignature},
		{"unit", s.Unit == perByte},
	} {
		if of.is {
			bad(of.key, "is set, but the method is GET, which sends nothing", "with another method")
		}
	}
}

// checkLayout refuses texts around an array that break its JSON. Defaults are filled in.
func (s *settings) checkLayout(bad complaint) {
	if s.Format != payload.JSONArray || s.ContentType != s.Format.ContentType() {
		return // users who set a type know its content
	}
	if s.BodyPrefix+s.BodySuffix != "" && !json.Valid([]byte(s.BodyPrefix+"[]"+s.BodySuffix)) {
		bad("bodyPrefix and bodySuffix", fmt.Sprintf("are %q and %q, which make no JSON around an array", s.BodyPrefix, s.BodySuffix),
			"such as {\"events\": and }, or a contentType that is not JSON")
	}
}

// checkRole refuses answers that a fallback sink and an on-success sink cannot give.
func (s *settings) checkRole(role string, bad complaint) {
	if role != sinksdk.UDContainerFallbackSink && role != sinksdk.UDContainerOnSuccessSink {
		return
	}
	allowed := "in a container of type " + role + ": fail, nack or drop"
	if s.OnUnavailable == fallbackAction {
		bad("onUnavailable", "is fallback", allowed)
	}
	if s.OnInvalid == fallbackAction {
		bad("onInvalid", "is fallback", allowed)
	}
	if table, err := verdict.Parse(s.Statuses); err == nil && table.Has(verdict.Fallback) {
		bad("statuses", "has the class fallback", "in a container of type "+role+": the other classes")
	}
	if s.OnOK == onSuccess {
		bad("onOK", "is on-success", "in a container of type "+role+": ack")
	}
}

// separate tells the sinks of one pod apart, which share an environment. Each is a processor of its own. The fallback and the on-success
// sink have their own limits unless a pool is set.
func (s *settings) separate(role string) {
	suffix := map[string]string{sinksdk.UDContainerFallbackSink: "/fallback", sinksdk.UDContainerOnSuccessSink: "/on-success"}[role]
	if suffix == "" {
		return
	}
	s.Pool.ID += suffix
	namespace, pipeline, vertex := os.Getenv("NUMAFLOW_NAMESPACE"), os.Getenv("NUMAFLOW_PIPELINE_NAME"), os.Getenv("NUMAFLOW_VERTEX_NAME")
	mono := os.Getenv("NUMAFLOW_MONO_VERTEX_NAME")
	switch s.Pool.Pool {
	case namespace + "/" + pipeline + "/" + vertex, namespace + "/" + mono, "default":
		s.Pool.Pool += suffix
	}
}

// checkLimits finds contradictory limits.
func (s *settings) checkLimits(bad complaint) {
	if s.DestinationMax > 0 {
		for _, err := range config.Split(s.destinationLimit().Validate()) {
			bad("destinationMax", err.Error(), "")
		}
	}
	if len(s.Pool.Pool) > longestPool {
		bad("pool", fmt.Sprintf("has %d bytes", len(s.Pool.Pool)), fmt.Sprintf("at most %d, for there are pools below it", longestPool))
	}
}

func orDefault[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

// setDefaults fills in unset settings.
func (s *settings) setDefaults() {
	orDefault(&s.Method, "POST")
	orDefault(&s.Query, noQuery)
	orDefault(&s.ForwardHeaders, "traceparent tracestate")
	orDefault(&s.Format, "single")
	orDefault(&s.ContentType, s.Format.ContentType())
	orDefault(&s.Compression, "none")
	orDefault(&s.CompressionMin, 1024)
	orDefault(&s.Redirects, noRedirects)
	orDefault(&s.MaxResponse, 64<<10)
	orDefault(&s.Signature, noSignature)
	if s.Signature == sha256Signature {
		orDefault(&s.SignatureHeader, defaultSignatureHeader)
	}
	orDefault(&s.MaxMessages, 100)
	orDefault(&s.MaxBytes, 1<<20)
	orDefault(&s.Concurrency, 16)
	orDefault(&s.Unit, perRequest)
	orDefault(&s.Destinations, 32)
	orDefault(&s.MaxAttempts, 4)
	orDefault(&s.MaxWait, 30*time.Second)
	orDefault(&s.MaxElapsed, 2*time.Minute)
	orDefault(&s.MaxPause, httpthrottle.DefaultMaxPause)
	orDefault(&s.BreakerOpen, 10*time.Second)
	orDefault(&s.OnOK, ackOnOK)
	orDefault(&s.OnUnavailable, failAction)
	orDefault(&s.OnInvalid, failAction)
	orDefault(&s.FailDelay, time.Second)
	if s.Dump {
		orDefault(&s.DumpBytes, 1024)
	}
	if s.apiKey().IsSet() {
		orDefault(&s.APIKeyHeader, "X-Api-Key")
	}
	if s.OAuthTokenURL != "" {
		orDefault(&s.OAuthRefreshBefore, 30*time.Second)
	}
	if s.JWTKeyFile != "" {
		orDefault(&s.JWTLifetime, defaultJWTLifetime)
	}
	orDefault(&s.Timeout, 30*time.Second)
	orDefault(&s.DialTimeout, 5*time.Second)
	orDefault(&s.TLSTimeout, 5*time.Second)
	orDefault(&s.HeaderTimeout, 20*time.Second)
	ping := outbound.PingTime(min(s.Timeout, s.HeaderTimeout))
	orDefault(&s.PingAfter, ping)
	orDefault(&s.PingTimeout, ping)
}
