package main

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/outbound"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/payload"
)

// settings is everything that can be set. The zero value of a field is its default.
type settings struct {
	requestSettings
	batchSettings
	limitSettings
	retrySettings
	answerSettings
	loginSettings
	connectionSettings

	Socket     string
	ServerInfo string
	Dump       bool
	DumpBytes  int

	// Pool is where the limits are shared; each has a pool of its own below Pool.Pool. Pool.Limit is the limit over all requests.
	Pool numathrottle.Config
}

// requestSettings say what is sent.
type requestSettings struct {
	URL, URLFile       string
	Method             method
	Query              query
	Headers            string
	ForwardHeaders     string
	Body, BodyFile     string
	ContentType        string
	Compression        payload.Compression
	CompressionMin     int
	NoIdempotencyKey   bool
	Destination        string
	Redirects          redirects
	MaxResponse        int
	Signature          signature
	SignatureHeader    string
	SignatureKey       numathrottle.Secret
	SignatureKeyFile   string
	url, body, destKey string // what the files say, or the settings
}

// batchSettings say which messages go together.
type batchSettings struct {
	Format      payload.Format
	MaxMessages int
	MaxBytes    int
	MaxAge      time.Duration
	Concurrency int
	BodyPrefix  string
	BodySuffix  string
	Separator   string
}

// limitSettings are the limits.
type limitSettings struct {
	Unit                unit
	MaxRequests         int
	InFlight            int
	DestinationMax      int
	DestinationInFlight int
	Destinations        int
	LimitWait           time.Duration
	Shadow              bool
}

// retrySettings say what is tried again.
type retrySettings struct {
	MaxAttempts     int
	MaxWait         time.Duration
	MaxElapsed      time.Duration
	MaxPause        time.Duration
	BreakerFailures int
	BreakerOpen     time.Duration
}

// answerSettings say how messages are answered.
type answerSettings struct {
	Statuses      string
	OnOK          okAction
	OnUnavailable action
	OnInvalid     action
	FailDelay     time.Duration
}

// loginSettings are the credentials.
type loginSettings struct {
	BasicUsername       string
	BasicPassword       numathrottle.Secret
	BasicPasswordFile   string
	BearerToken         numathrottle.Secret
	BearerTokenFile     string
	APIKeyHeader        string
	APIKey              numathrottle.Secret
	APIKeyFile          string
	OAuthTokenURL       string
	OAuthClientID       string
	OAuthSecret         numathrottle.Secret
	OAuthSecretFile     string
	OAuthScopes         string
	OAuthAudience       string
	OAuthRefreshBefore  time.Duration
	JWTKeyFile          string
	JWTKeyID            string
	JWTIssuer           string
	JWTSubject          string
	JWTAudience         string
	JWTScopes           string
	JWTClaims           string
	JWTLifetime         time.Duration
	JWTTokenURL         string
	AWSAccessKeyID      string
	AWSSecretKey        numathrottle.Secret
	AWSSecretKeyFile    string
	AWSSessionToken     numathrottle.Secret
	AWSSessionTokenFile string
	AWSRegion           string
	AWSService          string
}

// connectionSettings say how the service is reached.
type connectionSettings struct {
	Timeout        time.Duration
	DialTimeout    time.Duration
	TLSTimeout     time.Duration
	HeaderTimeout  time.Duration
	PingAfter      time.Duration
	PingTimeout    time.Duration
	AllowAddresses string
	Proxy          string
	CAFile         string
	CertFile       string
	KeyFile        string
}

type (
	// A method is an HTTP method.
	method string
	// A query is what of a message becomes parameters of the URL.
	query string
	// redirects says which redirects are followed.
	redirects string
	// A signature is how requests are signed.
	signature string
	// A unit is what the limits count.
	unit string
	// An okAction is how a message is answered that the service has.
	okAction string
	// An action is how a message is answered that it has not.
	action string
)

const (
	noQuery     query = "none"
	fieldsQuery query = "fields"

	noRedirects redirects = "none"
	sameHost    redirects = "same-host"

	noSignature      signature = "none"
	sha256Signature  signature = "sha256"
	standardWebhooks signature = "standard-webhooks"
	awsSignature     signature = "aws-sigv4"

	perRequest unit = "requests"
	perMessage unit = "messages"
	perByte    unit = "bytes"

	ackOnOK   okAction = "ack"
	onSuccess okAction = "on-success"

	failAction     action = "fail"
	nackAction     action = "nack"
	fallbackAction action = "fallback"
	dropAction     action = "drop"
)

func (s *settings) credential(text numathrottle.Secret, file string) outbound.Credential {
	return outbound.Credential{Text: text, File: file}
}

// layout is how messages stand in a request.
func (s *settings) layout() payload.Layout {
	return payload.Layout{Format: s.Format, Prefix: s.BodyPrefix, Suffix: s.BodySuffix, Separator: s.Separator}
}

// withoutBody tells whether requests have none.
func (s *settings) withoutBody() bool { return s.Method == http.MethodGet }

// dump returns what logs requests; nil for nothing.
func (s *settings) dump(log *slog.Logger) *outbound.Dump {
	if !s.Dump {
		return nil
	}
	d := outbound.NewDump(log, s.DumpBytes)
	d.HidePath = s.URLFile != ""
	d.Hidden = []string{s.APIKeyHeader, s.SignatureHeader}
	d.Secrets = []outbound.Credential{s.basicPassword(), s.bearerToken(), s.apiKey(), s.oauthSecret(), s.signatureKey(), s.awsSecretKey(), s.awsSessionToken()}
	return d
}
