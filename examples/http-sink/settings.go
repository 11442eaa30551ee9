package main

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/outbound"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/render"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// settings holds all settings. The zero value of a field is its default.
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

	// Pool configures the sharing of the limits; each has a pool of its own below Pool.Pool. Pool.Limit is the limit over all requests.
	Pool numathrottle.Config

	base http.RoundTripper // nil: connections; set by tests
}

// requestSettings configure the requests.
type requestSettings struct {
	URL, URLFile       string
	Method             method
	Query              query
	Headers            string
	ForwardHeaders     string
	Body, BodyFile     string
	ContentType        string
	Compression        render.Compression
	CompressionMin     int
	NoIdempotencyKey   bool
	Destination        string
	Redirects          redirects
	MaxResponse        int
	Signature          signature
	SignatureHeader    string
	SignatureKey       program.Credential
	url, body, destKey string // from the files, or the settings
}

// batchSettings configure the grouping of messages.
type batchSettings struct {
	Format      render.Format
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

// retrySettings configure the retries.
type retrySettings struct {
	MaxAttempts     int
	MaxWait         time.Duration
	MaxElapsed      time.Duration
	MaxPause        time.Duration
	BreakerFailures int
	BreakerOpen     time.Duration
}

// answerSettings configure the answers to messages.
type answerSettings struct {
	Statuses      string
	OnOK          okAction
	OnUnavailable action
	OnInvalid     action
	FailDelay     time.Duration
}

// loginSettings are the credentials.
type loginSettings struct {
	BasicUsername      string
	BasicPassword      program.Credential
	BearerToken        program.Credential
	APIKeyHeader       string
	APIKey             program.Credential
	OAuthTokenURL      string
	OAuthClientID      string
	OAuthSecret        program.Credential
	OAuthScopes        string
	OAuthAudience      string
	OAuthRefreshBefore time.Duration
	JWTKeyFile         string
	JWTKeyID           string
	JWTIssuer          string
	JWTSubject         string
	JWTAudience        string
	JWTScopes          string
	JWTClaims          string
	JWTLifetime        time.Duration
	JWTTokenURL        string
	AWSAccessKeyID     string
	AWSSecretKey       program.Credential
	AWSSessionToken    program.Credential
	AWSRegion          string
	AWSService         string
}

// connectionSettings configure the connection to the service.
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
	// A query is the part of a message that becomes URL parameters.
	query string
	// redirects configures which redirects are followed.
	redirects string
	// A signature is how requests are signed.
	signature string
	// A unit is what the limits count.
	unit string
	// An okAction is the answer to a stored message.
	okAction string
	// An action is the answer to a message that was not stored.
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

// layout returns the layout of messages in a request.
func (s *settings) layout() render.Layout {
	return render.Layout{Format: s.Format, Prefix: s.BodyPrefix, Suffix: s.BodySuffix, Separator: s.Separator}
}

// withoutBody reports whether requests have no body.
func (s *settings) withoutBody() bool { return s.Method == http.MethodGet }

// dump returns the logger of requests; nil for none.
func (s *settings) dump(log *slog.Logger) *outbound.Dump {
	if !s.Dump {
		return nil
	}
	d := outbound.NewDump(log, s.DumpBytes)
	d.HidePath = s.URLFile != ""
	d.Hidden = []string{s.APIKeyHeader, s.SignatureHeader}
	for _, c := range s.credentials() {
		d.Secrets = append(d.Secrets, *c.Credential)
	}
	return d
}
