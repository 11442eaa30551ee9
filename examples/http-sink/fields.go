package main

import (
	"net/http"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/render"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

type field = config.Field[*settings]

// prefix is the prefix of the variables of this program's own settings. The pool and the limit use numathrottle's.
const prefix = "HTTP_SINK_"

const (
	aQuarter   = "a quarter of `timeout` or `headerTimeout`, whichever is shorter, `1s` to `15s`: 5s"
	aTemplate  = "a text/template over the message"
	mostTokens = 1_000_000_000
)

// fields lists all settings of this program, in the order of the reference. The limit itself has the same names as in every program of this
// module.
var fields = slices.Concat(own(requestFields), own(batchFields), rateFields, own(limitFields), own(retryFields), own(answerFields),
	own(loginFields), own(connectionFields), own(processFields))

func own(fields []field) []field { return config.WithPrefix(prefix, fields...) }

var requestFields = []field{
	config.Unshown(config.LinesField("url", "an http or https URL, a template behind its host", "none: this or `urlFile` is required",
		"Where messages go. What stands before the first action cannot be left",
		func(s *settings) *string { return &s.URL }).Like("https://api.example.com/v1/events")),
	config.PathField("urlFile", "none", "The same in a file, such as a mounted Secret, for a URL that is a secret itself; never printed, and read at the start",
		func(s *settings) *string { return &s.URLFile }),
	config.ChoiceField("method", "The method", func(s *settings) *method { return &s.Method },
		http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet),
	config.ChoiceField("query", "With `method: GET`: what of a message becomes parameters of the URL, nothing or each field of a JSON object",
		func(s *settings) *query { return &s.Query }, noQuery, fieldsQuery),
	config.Unshown(config.LinesField("headers", "lines of `Name: value`, each value a template", "none",
		"Headers of the request; secrets have settings of their own",
		func(s *settings) *string { return &s.Headers }).Like(`X-Tenant: {{index .Headers "tenant"}}`)),
	config.TextField("forwardHeaders", "names, with spaces between", "`traceparent tracestate`", "Headers of the message that become headers of its request",
		func(s *settings) *string { return &s.ForwardHeaders }).Like("traceparent X-Tenant"),
	config.LinesField("body", aTemplate, "the payload as it is", "What is sent for a message",
		func(s *settings) *string { return &s.Body }).Like(`{"text":{{json .Value}}}`),
	config.PathField("bodyFile", "none", "The same in a file; read at the start", func(s *settings) *string { return &s.BodyFile }),
	config.TextField("contentType", "a media type", "that of `format`: `application/json`, `application/x-ndjson`, else `application/octet-stream`",
		"The header Content-Type", func(s *settings) *string { return &s.ContentType }).Like("text/plain"),
	config.ChoiceField("compression", "How bodies are compressed", func(s *settings) *render.Compression { return &s.Compression },
		render.NoCompression, render.Gzip, render.Zstd),
	config.NumberField("compressionMin", 1, 1<<30, "1024", "Shorter bodies, in bytes, are not compressed",
		func(s *settings) *int { return &s.CompressionMin }).In("bytes").Like("4096"),
	config.BoolField("noIdempotencyKey", "Send no `Idempotency-Key`. Then a POST or PATCH is sent again only if the service has not acted on it",
		func(s *settings) *bool { return &s.NoIdempotencyKey }),
	config.LinesField("destination", aTemplate, "the host", "Names the destination of a message, for the limits and breakers of each, at most 128 bytes",
		func(s *settings) *string { return &s.Destination }).Like(`{{.JSON.tenant}}`),
	config.ChoiceField("redirects", "Which redirects are followed: only 307 and 308, which keep method and body",
		func(s *settings) *redirects { return &s.Redirects }, noRedirects, sameHost),
	config.NumberField("maxResponse", 1, 64<<20, "65536", "How much of an answer is read, in bytes; the connection of a longer one is not used again",
		func(s *settings) *int { return &s.MaxResponse }).In("bytes").Like("1048576"),
	config.ChoiceField("signature", "How requests are signed: by HMAC-SHA256 of the body as it is sent, or as AWS asks for, with the settings `aws...`",
		func(s *settings) *signature { return &s.Signature }, noSignature, sha256Signature, standardWebhooks, awsSignature),
	config.TextField("signatureHeader", "a header's name, with `sha256`", "`X-Signature-256`", "Where the signature stands, after `sha256=`",
		func(s *settings) *string { return &s.SignatureHeader }).Like("X-Hub-Signature-256"),
	program.SecretField("signatureKey", "The key of the signature", func(s *settings) *numathrottle.Secret { return &s.SignatureKey.Text }),
	fileField("signatureKeyFile", func(s *settings) *string { return &s.SignatureKey.File }),
}

var batchFields = []field{
	config.ChoiceField("format", "How messages stand in a request: one in each, an array of JSON, lines of JSON, or one after the other",
		func(s *settings) *render.Format { return &s.Format }, render.Single, render.JSONArray, render.NDJSON, render.Raw),
	config.LinesField("bodyPrefix", "a text", "none", "What stands before the messages of a request, such as `{\"events\":`",
		func(s *settings) *string { return &s.BodyPrefix }).Like(`{"events":`),
	config.LinesField("bodySuffix", "a text", "none", "What stands behind them, such as `}`", func(s *settings) *string { return &s.BodySuffix }).Like("}"),
	config.LinesField("separator", "a text, with `raw`", "none", "What stands between them", func(s *settings) *string { return &s.Separator }).Like(","),
	config.NumberField("maxMessages", 1, 100_000, "100", "Messages in one request at most; with `single` it is 1",
		func(s *settings) *int { return &s.MaxMessages }).In("messages").Like("500"),
	config.NumberField("maxBytes", 1, 1<<30, "1048576", "Bytes in one request at most, before compression; a larger message goes alone",
		func(s *settings) *int { return &s.MaxBytes }).In("bytes").Like("262144"),
	config.DurationField("maxAge", time.Millisecond, time.Minute, "none: until the platform's batch ends", "How long a message waits for others to go with it",
		func(s *settings) *time.Duration { return &s.MaxAge }).Like("50ms"),
	config.NumberField("concurrency", 1, 10_000, "16", "Requests under way at once in this process. 1 keeps the order of messages to one destination",
		func(s *settings) *int { return &s.Concurrency }).In("requests").Like("64"),
}

// rateFields are all of the library's settings of a limit. The library documents them.
var rateFields = opening.LimitFields(poolOf)

var limitFields = []field{
	config.ChoiceField("unit", "What `max` and `destinationMax` count. Every attempt counts, also those that are repeated",
		func(s *settings) *unit { return &s.Unit }, perRequest, perMessage, perByte),
	config.NumberField("maxRequests", 0, mostTokens, "0: no limit", "Requests per `per` over the whole pool, beside a `max` of messages or bytes",
		func(s *settings) *int { return &s.MaxRequests }).In("requests").Like("50"),
	config.NumberField("inFlight", 0, mostTokens, "0: no limit", "Requests under way at once, over the whole pool; several times the number of pods",
		func(s *settings) *int { return &s.InFlight }).In("requests").Like("64"),
	config.NumberField("destinationMax", 0, mostTokens, "0: no limit", "As `max`, for each destination",
		func(s *settings) *int { return &s.DestinationMax }).In("of `unit`").Like("10"),
	config.NumberField("destinationInFlight", 0, mostTokens, "0: no limit", "As `inFlight`, for each destination",
		func(s *settings) *int { return &s.DestinationInFlight }).In("requests").Like("8"),
	config.NumberField("destinations", 1, 1000, "32", "How many destinations have limits and a breaker of their own in one process; the others share one",
		func(s *settings) *int { return &s.Destinations }).In("destinations").Like("100"),
	config.DurationField("limitWait", time.Millisecond, time.Hour, "none: it waits",
		"How long the requests of a batch wait for the limits, all together, before `onUnavailable`; below `10s` a batch is done before the pod is killed",
		func(s *settings) *time.Duration { return &s.LimitWait }).Like("8s"),
	config.BoolField("shadow", "Hold nothing back: only count what the limits would have", func(s *settings) *bool { return &s.Shadow }),
}

var retryFields = []field{
	config.NumberField("maxAttempts", 1, 100, "4", "How often a request is sent at most",
		func(s *settings) *int { return &s.MaxAttempts }).In("times").Like("6"),
	config.DurationField("maxWait", time.Millisecond, time.Hour, "30s", "The longest wait that the service may ask for; longer ones end in `onUnavailable`",
		func(s *settings) *time.Duration { return &s.MaxWait }).Like("1m"),
	config.DurationField("maxElapsed", time.Millisecond, 24*time.Hour, "2m", "How long after its first attempt a request is sent again",
		func(s *settings) *time.Duration { return &s.MaxElapsed }).Like("10m"),
	config.DurationField("maxPause", time.Millisecond, throttle.DefaultMaxRetryAfter, "5m",
		"How long one refusal of the service holds back the other requests, of this process and of the pool; what it asks for beyond that is logged",
		func(s *settings) *time.Duration { return &s.MaxPause }).Like("1m"),
	config.NumberField("breakerFailures", 0, 10_000, "0: no breaker", "After so many failed attempts in a row a destination is not called for `breakerOpen`",
		func(s *settings) *int { return &s.BreakerFailures }).In("attempts").Like("5"),
	config.DurationField("breakerOpen", time.Millisecond, time.Hour, "10s", "How long that is, before one request tries",
		func(s *settings) *time.Duration { return &s.BreakerOpen }).Like("30s"),
}

var answerFields = []field{
	{
		Key: "statuses", Example: "404=drop 409=ok 5xx=retry", Allowed: allowedStatuses,
		Default: "[by class](#what-becomes-of-a-message)", Doc: "What becomes of a message by the status of its answer",
		Value: config.Lines(func(s *settings) *string { return &s.Statuses }),
		Range: func(s *settings) bool { _, err := parseStatuses(s.Statuses); return err == nil },
	},
	config.ChoiceField("onOK", "How a message is answered that the service has: acknowledged, or handed to the on-success sink with the answer's body",
		func(s *settings) *okAction { return &s.OnOK }, ackOnOK, onSuccess),
	config.ChoiceField("onUnavailable", "What becomes of a message that the service could not take for now",
		func(s *settings) *action { return &s.OnUnavailable }, failAction, nackAction, fallbackAction, dropAction),
	config.ChoiceField("onInvalid", "What becomes of a message that cannot be sent at all: no JSON, a template that fails, a URL outside",
		func(s *settings) *action { return &s.OnInvalid }, failAction, nackAction, fallbackAction, dropAction),
	config.DurationField("failDelay", time.Millisecond, time.Minute, "1s",
		"How long a batch with failures is held at least: the platform offers them again at once, 65,535 times, and then ends the pod",
		func(s *settings) *time.Duration { return &s.FailDelay }).Like("5s"),
}

var loginFields = []field{
	config.TextField("basicUsername", "a text", "none", "The user of basic authentication", func(s *settings) *string { return &s.BasicUsername }).Like("sink"),
	program.SecretField("basicPassword", "Its password", func(s *settings) *numathrottle.Secret { return &s.BasicPassword.Text }),
	fileField("basicPasswordFile", func(s *settings) *string { return &s.BasicPassword.File }),
	program.SecretField("bearerToken", "A bearer token", func(s *settings) *numathrottle.Secret { return &s.BearerToken.Text }),
	fileField("bearerTokenFile", func(s *settings) *string { return &s.BearerToken.File }),
	config.TextField("apiKeyHeader", "a header's name", "`X-Api-Key`", "The header of `apiKey`",
		func(s *settings) *string { return &s.APIKeyHeader }).Like("X-Token"),
	program.SecretField("apiKey", "A key that is sent in a header", func(s *settings) *numathrottle.Secret { return &s.APIKey.Text }),
	fileField("apiKeyFile", func(s *settings) *string { return &s.APIKey.File }),
	config.EndpointField("oauthTokenURL", "none", "The token endpoint of OAuth 2.0, for the client credentials grant",
		func(s *settings) *string { return &s.OAuthTokenURL }).Like("https://login.example.com/token"),
	config.TextField("oauthClientID", "a text", "none", "The client's ID", func(s *settings) *string { return &s.OAuthClientID }).Like("sink"),
	program.SecretField("oauthSecret", "The client's secret", func(s *settings) *numathrottle.Secret { return &s.OAuthSecret.Text }),
	fileField("oauthSecretFile", func(s *settings) *string { return &s.OAuthSecret.File }),
	config.TextField("oauthScopes", "scopes, with spaces between", "none", "What the token is for",
		func(s *settings) *string { return &s.OAuthScopes }).Like("events.write"),
	config.TextField("oauthAudience", "a text", "none", "The parameter `audience`, which some servers want",
		func(s *settings) *string { return &s.OAuthAudience }).Like("https://api.example.com"),
	config.DurationField("oauthRefreshBefore", time.Second, time.Hour, "30s", "How long before its end a token is replaced",
		func(s *settings) *time.Duration { return &s.OAuthRefreshBefore }).Like("1m"),
	config.PathField("jwtKeyFile", "none", "A private key in PEM, RSA, ECDSA or Ed25519, that signs a JWT to log in with; read anew for every token",
		func(s *settings) *string { return &s.JWTKeyFile }),
	config.TextField("jwtKeyID", "a text", "none", "The header `kid` of the JWT", func(s *settings) *string { return &s.JWTKeyID }).Like("key-1"),
	config.TextField("jwtIssuer", "a text", "none", "The claim `iss`", func(s *settings) *string { return &s.JWTIssuer }).Like("sink@example.com"),
	config.TextField("jwtSubject", "a text", "none", "The claim `sub`", func(s *settings) *string { return &s.JWTSubject }).Like("sink@example.com"),
	config.TextField("jwtAudience", "a text", "`jwtTokenURL`, else none", "The claim `aud`",
		func(s *settings) *string { return &s.JWTAudience }).Like("https://api.example.com"),
	config.TextField("jwtScopes", "scopes, with spaces between", "none", "The claim `scope`, and with `jwtTokenURL` what the token is for",
		func(s *settings) *string { return &s.JWTScopes }).Like("events.write"),
	config.Field[*settings]{
		Key: "jwtClaims", Example: "{tenant: acme}", Allowed: "a JSON object; in the file also a mapping",
		Default: "none", Doc: "More claims; `iat`, `exp` and `jti` are made here",
		Value: config.Object(func(s *settings) *string { return &s.JWTClaims }),
	},
	config.DurationField("jwtLifetime", time.Minute, 24*time.Hour, "5m", "How long a JWT is good for; it is replaced 30 s before its end",
		func(s *settings) *time.Duration { return &s.JWTLifetime }).Like("1h"),
	config.EndpointField("jwtTokenURL", "none: the JWT itself is sent", "Where the JWT is exchanged for a token (RFC 7523)",
		func(s *settings) *string { return &s.JWTTokenURL }).Like("https://login.example.com/token"),
	config.TextField("awsAccessKeyID", "a text", "none", "The ID of the access key, with `signature: aws-sigv4`",
		func(s *settings) *string { return &s.AWSAccessKeyID }).Like("AKIAEXAMPLE"),
	program.SecretField("awsSecretKey", "The secret access key", func(s *settings) *numathrottle.Secret { return &s.AWSSecretKey.Text }),
	fileField("awsSecretKeyFile", func(s *settings) *string { return &s.AWSSecretKey.File }),
	program.SecretField("awsSessionToken", "The session token of temporary credentials",
		func(s *settings) *numathrottle.Secret { return &s.AWSSessionToken.Text }),
	fileField("awsSessionTokenFile", func(s *settings) *string { return &s.AWSSessionToken.File }),
	config.TextField("awsRegion", "a text such as `eu-central-1`", "none", "The region that requests are signed for",
		func(s *settings) *string { return &s.AWSRegion }).Like("eu-central-1"),
	config.TextField("awsService", "a text such as `execute-api`", "none", "The service that they are signed for",
		func(s *settings) *string { return &s.AWSService }).Like("execute-api"),
}

var connectionFields = []field{
	config.DurationField("timeout", time.Millisecond, time.Hour, "30s", "How long one attempt may take, with its answer",
		func(s *settings) *time.Duration { return &s.Timeout }).Like("10s"),
	config.DurationField("dialTimeout", time.Millisecond, time.Hour, "5s", "How long it may take to connect",
		func(s *settings) *time.Duration { return &s.DialTimeout }).Like("2s"),
	config.DurationField("tlsTimeout", time.Millisecond, time.Hour, "5s", "How long the TLS handshake may take",
		func(s *settings) *time.Duration { return &s.TLSTimeout }).Like("2s"),
	config.DurationField("headerTimeout", time.Millisecond, time.Hour, "20s", "How long the head of an answer may take, once the request is written",
		func(s *settings) *time.Duration { return &s.HeaderTimeout }).Like("8s"),
	config.DurationField("pingAfter", 10*time.Millisecond, time.Hour, aQuarter,
		"How long an HTTP/2 connection may be silent before it is asked whether it is alive",
		func(s *settings) *time.Duration { return &s.PingAfter }).Like("5s"),
	config.DurationField("pingTimeout", 10*time.Millisecond, time.Hour, aQuarter,
		"How long it may take to say so before it is closed; its requests are then sent again over another",
		func(s *settings) *time.Duration { return &s.PingTimeout }).Like("3s"),
	{
		Key: "allowAddresses", Example: "private", Allowed: dialguard.AllowedAddresses, Default: "none",
		Doc:   "Which addresses may be dialled beside the public ones, checked when names are resolved; services in a cluster need `private`",
		Value: config.Text(func(s *settings) *string { return &s.AllowAddresses }),
		Range: func(s *settings) bool { _, err := dialguard.ParseAddresses(s.AllowAddresses); return err == nil },
	},
	config.EndpointField("proxy", "none; `HTTP_PROXY` and its like do not count", "A proxy for everything; addresses behind it are not checked",
		func(s *settings) *string { return &s.Proxy }).Like("http://proxy.example.com:3128"),
	config.PathField("caFile", "the system's", "The authorities, in PEM, that are trusted instead of the system's; read anew when it changes",
		func(s *settings) *string { return &s.CAFile }),
	config.PathField("certFile", "none", "The client's certificate in PEM, with `keyFile`; read anew when it changes",
		func(s *settings) *string { return &s.CertFile }),
	config.PathField("keyFile", "none", "The client's key in PEM", func(s *settings) *string { return &s.KeyFile }),
}

var processFields = []field{
	config.PathField("socket", "numaflow-go's, by the role of the container", "The unix socket to listen on, outside Numaflow",
		func(s *settings) *string { return &s.Socket }).Like("/tmp/sink.sock"),
	config.PathField("serverInfo", "numaflow-go's, by the role of the container", "The server-info file to write, outside Numaflow",
		func(s *settings) *string { return &s.ServerInfo }).Like("/tmp/sinker-server-info"),
	config.BoolField("dump", "Log requests as they are sent, for debugging", func(s *settings) *bool { return &s.Dump }),
	config.NumberField("dumpBytes", 1, 1<<20, "1024", "How much of a body is logged, in bytes",
		func(s *settings) *int { return &s.DumpBytes }).In("bytes").Like("4096"),
}

func fileField(key string, at func(*settings) *string) field {
	return config.PathField(key, "none", "The same in a file, such as a mounted Secret; read anew for every use", at)
}
