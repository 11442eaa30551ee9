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

	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/render"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// poolOf returns the settings of the pool.
func poolOf(s *settings) *opening.Config { return (*opening.Config)(&s.Pool) }

// finish reads the files that settings name, and fills in the defaults. It finds every fault, including those of the files.
func finish(s *settings, r *config.Reading) {
	bad := program.ComplainTo(r)
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
}

// readFiles reads the files that replace other settings.
func (s *settings) readFiles(bad program.Complaint) {
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
func (s *settings) checkTemplates(bad program.Complaint) {
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
func (s *settings) checkPairs(bad program.Complaint) {
	bad.OneOf("one of them", program.Given("url", s.URL != ""), program.Given("urlFile", s.URLFile != ""))
	bad.OneOf("one of them", program.Given("body", s.Body != ""), program.Given("bodyFile", s.BodyFile != ""))
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
		{"awsSecretKey or awsSecretKeyFile", s.AWSSecretKey.IsSet(), true},
		{"awsSessionToken or awsSessionTokenFile", s.AWSSessionToken.IsSet(), false},
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
	key := s.SignatureKey.IsSet()
	needs("signature", signed, "signatureKey or signatureKeyFile", key)
	needs("signatureKey or signatureKeyFile", key, "signature", signed)
	needs("signatureHeader", s.SignatureHeader != "", "signature: sha256", s.Signature == sha256Signature)
	needs("certFile", s.CertFile != "", "keyFile", s.KeyFile != "")
	needs("keyFile", s.KeyFile != "", "certFile", s.CertFile != "")
	needs("basicUsername", s.BasicUsername != "", "basicPassword or basicPasswordFile", s.BasicPassword.IsSet())
	needs("basicPassword or basicPasswordFile", s.BasicPassword.IsSet(), "basicUsername", s.BasicUsername != "")
	needs("apiKeyHeader", s.APIKeyHeader != "", "apiKey or apiKeyFile", s.APIKey.IsSet())
	needs("oauthTokenURL", s.OAuthTokenURL != "", "oauthClientID", s.OAuthClientID != "")
	needs("oauthTokenURL", s.OAuthTokenURL != "", "oauthSecret or oauthSecretFile", s.OAuthSecret.IsSet())
	needs("oauthClientID", s.OAuthClientID != "", "oauthTokenURL", s.OAuthTokenURL != "")
	needs("oauthSecret or oauthSecretFile", s.OAuthSecret.IsSet(), "oauthTokenURL", s.OAuthTokenURL != "")
	needs("separator", s.Separator != "", "format: raw", s.Format == render.Raw)
	needs("query", s.Query == fieldsQuery, "method: GET", s.withoutBody())
	needs("dumpBytes", s.DumpBytes > 0, "dump: true", s.Dump)
	needs("maxRequests", s.MaxRequests > 0, "unit: messages or unit: bytes, beside which it counts", s.Unit == perMessage || s.Unit == perByte)
}

// checkAddresses refuses literal addresses that would be refused when dialled. Names are resolved only then.
func (s *settings) checkAddresses(bad program.Complaint) {
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
func (s *settings) checkMethod(bad program.Complaint) {
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
		{"compression", s.Compression != "" && s.Compression != render.NoCompression},
		{"format", s.Format != "" && s.Format != render.Single},
		{"signature", s.Signature != "" && s.Signature != noSignature && s.Signature != awsSignature},
		{"unit", s.Unit == perByte},
	} {
		if of.is {
			bad(of.key, "is set, but the method is GET, which sends nothing", "with another method")
		}
	}
}

// checkLayout refuses texts around an array that break its JSON. Defaults are filled in.
func (s *settings) checkLayout(bad program.Complaint) {
	if s.Format != render.JSONArray || s.ContentType != s.Format.ContentType() {
		return // users who set a type know its content
	}
	if s.BodyPrefix+s.BodySuffix != "" && !json.Valid([]byte(s.BodyPrefix+"[]"+s.BodySuffix)) {
		bad("bodyPrefix and bodySuffix", fmt.Sprintf("are %q and %q, which make no JSON around an array", s.BodyPrefix, s.BodySuffix),
			"such as {\"events\": and }, or a contentType that is not JSON")
	}
}

// checkRole refuses answers that a fallback sink and an on-success sink cannot give.
func (s *settings) checkRole(role string, bad program.Complaint) {
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
	if table, err := parseStatuses(s.Statuses); err == nil && table.Has(classFallback) {
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
func (s *settings) checkLimits(bad program.Complaint) {
	if s.DestinationMax > 0 {
		for _, err := range config.Split(s.destinationLimit().Validate()) {
			bad("destinationMax", err.Error(), "")
		}
	}
	if len(s.Pool.Pool) > longestPool {
		bad("pool", fmt.Sprintf("has %d bytes", len(s.Pool.Pool)), fmt.Sprintf("at most %d, for there are pools below it", longestPool))
	}
}

// setDefaults fills in unset settings.
func (s *settings) setDefaults() {
	program.OrDefault(&s.Method, "POST")
	program.OrDefault(&s.Query, noQuery)
	program.OrDefault(&s.ForwardHeaders, "traceparent tracestate")
	program.OrDefault(&s.Format, "single")
	program.OrDefault(&s.ContentType, s.Format.ContentType())
	program.OrDefault(&s.Compression, "none")
	program.OrDefault(&s.CompressionMin, 1024)
	program.OrDefault(&s.Redirects, noRedirects)
	program.OrDefault(&s.MaxResponse, 64<<10)
	program.OrDefault(&s.Signature, noSignature)
	if s.Signature == sha256Signature {
		program.OrDefault(&s.SignatureHeader, defaultSignatureHeader)
	}
	program.OrDefault(&s.MaxMessages, 100)
	program.OrDefault(&s.MaxBytes, 1<<20)
	program.OrDefault(&s.Concurrency, 16)
	program.OrDefault(&s.Unit, perRequest)
	program.OrDefault(&s.Destinations, 32)
	program.OrDefault(&s.MaxAttempts, 4)
	program.OrDefault(&s.MaxWait, 30*time.Second)
	program.OrDefault(&s.MaxElapsed, 2*time.Minute)
	program.OrDefault(&s.MaxPause, httpthrottle.DefaultMaxPause)
	program.OrDefault(&s.BreakerOpen, 10*time.Second)
	program.OrDefault(&s.OnOK, ackOnOK)
	program.OrDefault(&s.OnUnavailable, failAction)
	program.OrDefault(&s.OnInvalid, failAction)
	program.OrDefault(&s.FailDelay, time.Second)
	if s.Dump {
		program.OrDefault(&s.DumpBytes, 1024)
	}
	if s.APIKey.IsSet() {
		program.OrDefault(&s.APIKeyHeader, "X-Api-Key")
	}
	if s.OAuthTokenURL != "" {
		program.OrDefault(&s.OAuthRefreshBefore, 30*time.Second)
	}
	if s.JWTKeyFile != "" {
		program.OrDefault(&s.JWTLifetime, defaultJWTLifetime)
	}
	program.OrDefault(&s.Timeout, 30*time.Second)
	program.OrDefault(&s.DialTimeout, 5*time.Second)
	program.OrDefault(&s.TLSTimeout, 5*time.Second)
	program.OrDefault(&s.HeaderTimeout, 20*time.Second)
	ping := httpthrottle.PingTime(min(s.Timeout, s.HeaderTimeout))
	program.OrDefault(&s.PingAfter, ping)
	program.OrDefault(&s.PingTimeout, ping)
}
