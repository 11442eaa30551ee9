package main

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/outbound"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/payload"
	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/verdict"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

type field = config.Field[settings]

// prefix is what the variables of this program's own settings begin with. Those of the
// pool and the limit are those of numathrottle.
const prefix = "HTTP_SINK_"

const (
	aWholeNumber = "a whole number, "
	aPath        = "the path of a file"
	aTemplate    = "a text/template over the message, see below"
	boolean      = "`true` or `false`"
	mostTokens   = 1_000_000_000
)

// fields is every setting of this program, in the order of the reference.
var fields = withPrefix(slices.Concat(requestFields, batchFields, limitFields, retryFields, answerFields, loginFields, connectionFields, processFields))

// withPrefix names the variables. The limit's own are those that every program of this
// module has.
func withPrefix(fields []field) []field {
	for i := range fields {
		if !slices.Contains([]string{"max", "per", "burst", "hard"}, fields[i].Key) {
			fields[i].Prefix = prefix
		}
	}
	return fields
}

var requestFields = []field{
	linesField("url", "an http or https URL, a template behind its host", "none: this or `urlFile` is required",
		"Where messages go. What stands before the first action cannot be left", func(s *settings) *string { return &s.URL }),
	textField("urlFile", aPath, "none", "The same in a file, such as a mounted Secret, for a URL that is a secret itself; never printed",
		func(s *settings) *string { return &s.URLFile }),
	choiceField("method", "The method", func(s *settings) *method { return &s.Method },
		http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete),
	linesField("headers", "lines of `Name: value`, each value a template", "none", "Headers of the request; secrets have settings of their own",
		func(s *settings) *string { return &s.Headers }),
	textField("forwardHeaders", "names, with spaces between", "`traceparent tracestate`", "Headers of the message that become headers of its request",
		func(s *settings) *string { return &s.ForwardHeaders }),
	linesField("body", aTemplate, "the payload as it is", "What is sent for a message", func(s *settings) *string { return &s.Body }),
	textField("bodyFile", aPath, "none", "The same in a file", func(s *settings) *string { return &s.BodyFile }),
	textField("contentType", "a media type", "that of `format`: `application/json`, `application/x-ndjson`, else `application/octet-stream`",
		"The header Content-Type", func(s *settings) *string { return &s.ContentType }),
	choiceField("compression", "How bodies are compressed", func(s *settings) *payload.Compression { return &s.Compression },
		payload.None, payload.Gzip, payload.Zstd),
	numberField("compressionMin", 1, 1<<30, "1024", "Shorter bodies, in bytes, are not compressed", func(s *settings) *int { return &s.CompressionMin }),
	boolField("noIdempotencyKey", "Send no `Idempotency-Key`. Then a POST or PATCH is sent again only if the service has not acted on it",
		func(s *settings) *bool { return &s.NoIdempotencyKey }),
	linesField("destination", aTemplate, "the host", "Names the destination of a message, for the limits and breakers of each, at most 128 bytes",
		func(s *settings) *string { return &s.Destination }),
	choiceField("redirects", "Which redirects are followed: only 307 and 308, which keep method and body", func(s *settings) *redirects { return &s.Redirects },
		noRedirects, sameHost),
	numberField("maxResponse", 1, 64<<20, "65536", "How much of an answer is read, in bytes", func(s *settings) *int { return &s.MaxResponse }),
	choiceField("signature", "How requests are signed, by HMAC-SHA256 of the body as it is sent", func(s *settings) *signature { return &s.Signature },
		noSignature, sha256Signature, standardWebhooks),
	textField("signatureHeader", "a header's name, with `sha256`", "`X-Signature-256`", "Where the signature stands, after `sha256=`",
		func(s *settings) *string { return &s.SignatureHeader }),
	secretField("signatureKey", "The key of the signature", func(s *settings) *numathrottle.Secret { return &s.SignatureKey }),
	fileField("signatureKeyFile", func(s *settings) *string { return &s.SignatureKeyFile }),
}

var batchFields = []field{
	choiceField("format", "How messages stand in a request: one in each, an array of JSON, lines of JSON, or one after the other",
		func(s *settings) *payload.Format { return &s.Format }, payload.Single, payload.JSONArray, payload.NDJSON, payload.Raw),
	numberField("maxMessages", 1, 100_000, "100", "Messages in one request at most; with `single` it is 1", func(s *settings) *int { return &s.MaxMessages }),
	numberField("maxBytes", 1, 1<<30, "1048576", "Bytes in one request at most, before compression; a larger message goes alone",
		func(s *settings) *int { return &s.MaxBytes }),
	durationField("maxAge", time.Millisecond, time.Minute, "none: until the platform's batch ends", "How long a message waits for others to go with it",
		func(s *settings) *time.Duration { return &s.MaxAge }),
	numberField("concurrency", 1, 10_000, "16", "Requests under way at once in this process. 1 keeps the order of messages to one destination",
		func(s *settings) *int { return &s.Concurrency }),
}

var limitFields = []field{
	{
		Key: "max", Allowed: aWholeNumber + "0 to 1000000000", Default: "`0`: no limit", Doc: "How many of `unit` per `per`, over the whole pool",
		Value: config.Int(func(s *settings) *int { return &s.Limit.Max }),
		Range: func(s *settings) bool { return limitOK(throttle.Limit{Max: s.Limit.Max}) },
	},
	{
		Key: "per", Allowed: "a duration, `1ms` to `744h`", Default: "`1s`", Doc: "The period of `max`, `maxRequests` and `destinationMax`",
		Value: config.Duration(func(s *settings) *time.Duration { return &s.Limit.Per }),
		Range: func(s *settings) bool { return limitOK(throttle.Limit{Per: s.Limit.Per}) },
	},
	{
		Key: "burst", Allowed: aWholeNumber + "0 to 1000000000, with `hard` at most `max`", Default: "what `max` earns in 100 ms, at least 1",
		Doc:   "How much of `max` the whole pool can save up",
		Value: config.Int(func(s *settings) *int { return &s.Limit.Burst }),
		Range: func(s *settings) bool { return limitOK(throttle.Limit{Burst: s.Limit.Burst}) },
	},
	{
		Key: "hard", Allowed: boolean, Default: "`false`", Doc: "At most `max` in any window of `per`, at the price of a lower rate",
		Value: config.Bool(func(s *settings) *bool { return &s.Limit.Hard }),
	},
	choiceField("unit", "What `max` and `destinationMax` count. Every attempt counts, also those that are repeated",
		func(s *settings) *unit { return &s.Unit }, perRequest, perMessage, perByte),
	numberField("maxRequests", 0, mostTokens, "0: no limit", "Requests per `per` over the whole pool, beside a `max` of messages or bytes",
		func(s *settings) *int { return &s.MaxRequests }),
	numberField("inFlight", 0, mostTokens, "0: no limit", "Requests under way at once, over the whole pool; several times the number of pods",
		func(s *settings) *int { return &s.InFlight }),
	numberField("destinationMax", 0, mostTokens, "0: no limit", "As `max`, for each destination", func(s *settings) *int { return &s.DestinationMax }),
	numberField("destinationInFlight", 0, mostTokens, "0: no limit", "As `inFlight`, for each destination",
		func(s *settings) *int { return &s.DestinationInFlight }),
	numberField("destinations", 1, 1000, "32", "How many destinations have limits and a breaker of their own in one process; the others share one",
		func(s *settings) *int { return &s.Destinations }),
	durationField("limitWait", time.Millisecond, time.Hour, "none: it waits", "How long a request waits for the limits before `onUnavailable`",
		func(s *settings) *time.Duration { return &s.LimitWait }),
	boolField("shadow", "Hold nothing back: only count what the limits would have", func(s *settings) *bool { return &s.Shadow }),
}

var retryFields = []field{
	numberField("maxAttempts", 1, 100, "4", "How often a request is sent at most", func(s *settings) *int { return &s.MaxAttempts }),
	durationField("maxWait", time.Millisecond, time.Hour, "30s", "The longest wait that the service may ask for; longer ones end in `onUnavailable`",
		func(s *settings) *time.Duration { return &s.MaxWait }),
	durationField("maxElapsed", time.Millisecond, 24*time.Hour, "2m", "How long after its first attempt a request is sent again",
		func(s *settings) *time.Duration { return &s.MaxElapsed }),
	numberField("breakerFailures", 0, 10_000, "0: no breaker", "After so many failed attempts in a row a destination is not called for `breakerOpen`",
		func(s *settings) *int { return &s.BreakerFailures }),
	durationField("breakerOpen", time.Millisecond, time.Hour, "10s", "How long that is, before one request tries",
		func(s *settings) *time.Duration { return &s.BreakerOpen }),
}

var answerFields = []field{
	{
		Key: "statuses", Allowed: verdict.Allowed, Default: "see below", Doc: "What becomes of a message by the status of its answer",
		Value: config.Lines(func(s *settings) *string { return &s.Statuses }),
		Range: func(s *settings) bool { _, err := verdict.Parse(s.Statuses); return err == nil },
	},
	choiceField("onOK", "How a message is answered that the service has: acknowledged, or handed to the on-success sink with the answer's body",
		func(s *settings) *okAction { return &s.OnOK }, ackOnOK, onSuccess),
	choiceField("onUnavailable", "What becomes of a message that the service could not take for now: see below",
		func(s *settings) *action { return &s.OnUnavailable }, failAction, nackAction, fallbackAction, dropAction),
	choiceField("onInvalid", "What becomes of a message that cannot be sent at all: no JSON, a template that fails, a URL outside",
		func(s *settings) *action { return &s.OnInvalid }, failAction, nackAction, fallbackAction, dropAction),
	durationField("failDelay", time.Millisecond, time.Minute, "1s",
		"How long a batch with failures is held at least: the platform offers them again at once, 65,535 times, and then ends the pod",
		func(s *settings) *time.Duration { return &s.FailDelay }),
}

var loginFields = []field{
	textField("basicUsername", "a text", "none", "The user of basic authentication", func(s *settings) *string { return &s.BasicUsername }),
	secretField("basicPassword", "Its password", func(s *settings) *numathrottle.Secret { return &s.BasicPassword }),
	fileField("basicPasswordFile", func(s *settings) *string { return &s.BasicPasswordFile }),
	secretField("bearerToken", "A bearer token", func(s *settings) *numathrottle.Secret { return &s.BearerToken }),
	fileField("bearerTokenFile", func(s *settings) *string { return &s.BearerTokenFile }),
	textField("apiKeyHeader", "a header's name", "`X-Api-Key`", "The header of `apiKey`", func(s *settings) *string { return &s.APIKeyHeader }),
	secretField("apiKey", "A key that is sent in a header", func(s *settings) *numathrottle.Secret { return &s.APIKey }),
	fileField("apiKeyFile", func(s *settings) *string { return &s.APIKeyFile }),
	urlField("oauthTokenURL", "none", "The token endpoint of OAuth 2.0, for the client credentials grant",
		func(s *settings) *string { return &s.OAuthTokenURL }),
	textField("oauthClientID", "a text", "none", "The client's ID", func(s *settings) *string { return &s.OAuthClientID }),
	secretField("oauthSecret", "The client's secret", func(s *settings) *numathrottle.Secret { return &s.OAuthSecret }),
	fileField("oauthSecretFile", func(s *settings) *string { return &s.OAuthSecretFile }),
	textField("oauthScopes", "scopes, with spaces between", "none", "What the token is for", func(s *settings) *string { return &s.OAuthScopes }),
	textField("oauthAudience", "a text", "none", "The parameter `audience`, which some servers want", func(s *settings) *string { return &s.OAuthAudience }),
	durationField("oauthRefreshBefore", time.Second, time.Hour, "30s", "How long before its end a token is replaced",
		func(s *settings) *time.Duration { return &s.OAuthRefreshBefore }),
}

var connectionFields = []field{
	durationField("timeout", time.Millisecond, time.Hour, "30s", "How long one attempt may take, with its answer",
		func(s *settings) *time.Duration { return &s.Timeout }),
	durationField("dialTimeout", time.Millisecond, time.Hour, "5s", "How long it may take to connect",
		func(s *settings) *time.Duration { return &s.DialTimeout }),
	durationField("tlsTimeout", time.Millisecond, time.Hour, "5s", "How long the TLS handshake may take",
		func(s *settings) *time.Duration { return &s.TLSTimeout }),
	durationField("headerTimeout", time.Millisecond, time.Hour, "20s", "How long the head of an answer may take, once the request is written",
		func(s *settings) *time.Duration { return &s.HeaderTimeout }),
	{
		Key: "allowAddresses", Allowed: outbound.AllowedAddresses, Default: "none",
		Doc:   "Which addresses may be dialled beside the public ones, checked when names are resolved; services in a cluster need `private`",
		Value: config.Text(func(s *settings) *string { return &s.AllowAddresses }),
		Range: func(s *settings) bool { _, err := outbound.ParseAddresses(s.AllowAddresses); return err == nil },
	},
	urlField("proxy", "none; `HTTP_PROXY` and its like do not count", "A proxy for everything; addresses behind it are not checked",
		func(s *settings) *string { return &s.Proxy }),
	textField("caFile", aPath, "the system's", "The authorities, in PEM, that are trusted instead of the system's; read anew when it changes",
		func(s *settings) *string { return &s.CAFile }),
	textField("certFile", aPath, "none", "The client's certificate in PEM, with `keyFile`; read anew when it changes",
		func(s *settings) *string { return &s.CertFile }),
	textField("keyFile", aPath, "none", "The client's key in PEM", func(s *settings) *string { return &s.KeyFile }),
}

var processFields = []field{
	{
		Key: "metricsAddr", Allowed: "an address and port, such as `:9095`", Default: "none", Doc: "Where `/metrics` is served, in Prometheus' format",
		Value: config.Text(func(s *settings) *string { return &s.MetricsAddr }),
		Range: func(s *settings) bool { return s.MetricsAddr == "" || isAddress(s.MetricsAddr) },
	},
	textField("socket", aPath, "numaflow-go's, by the role of the container", "The unix socket to listen on, outside Numaflow",
		func(s *settings) *string { return &s.Socket }),
	textField("serverInfo", aPath, "numaflow-go's, by the role of the container", "The server-info file to write, outside Numaflow",
		func(s *settings) *string { return &s.ServerInfo }),
}

func textField(key, allowed, byDefault, doc string, at func(*settings) *string) field {
	return field{Key: key, Allowed: allowed, Default: byDefault, Doc: doc, Value: config.Text(at)}
}

func linesField(key, allowed, byDefault, doc string, at func(*settings) *string) field {
	return field{Key: key, Allowed: allowed, Default: byDefault, Doc: doc, Value: config.Lines(at)}
}

func fileField(key string, at func(*settings) *string) field {
	return textField(key, aPath, "none", "The same in a file, such as a mounted Secret; read anew for every use", at)
}

func urlField(key, byDefault, doc string, at func(*settings) *string) field {
	return field{
		Key: key, Allowed: "an http or https URL without user, query and fragment", Default: byDefault, Doc: doc, Value: config.Text(at),
		Range: func(s *settings) bool { return *at(s) == "" || isPlainURL(*at(s)) },
	}
}

func secretField(key, doc string, at func(*settings) *numathrottle.Secret) field {
	return field{Key: key, Allowed: "a text, never printed", Default: "none", Doc: doc, Value: config.Secret(
		func(s *settings, text string) { *at(s) = numathrottle.NewSecret(text) },
		func(s *settings) bool { return at(s).IsSet() },
	)}
}

func boolField(key, doc string, at func(*settings) *bool) field {
	return field{Key: key, Allowed: boolean, Default: "`false`", Doc: doc, Value: config.Bool(at)}
}

func choiceField[T ~string](key, doc string, at func(*settings) *T, words ...T) field {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + string(w) + "`"
	}
	last := len(quoted) - 1
	allowed := strings.Join(quoted[:last], ", ") + " or " + quoted[last]
	return field{Key: key, Allowed: allowed, Default: "`" + string(words[0]) + "`", Doc: doc, Value: config.Choice(at, words...)}
}

func numberField(key string, least, most int, byDefault, doc string, at func(*settings) *int) field {
	return field{
		Key: key, Allowed: fmt.Sprintf("%s%d to %d", aWholeNumber, least, most), Default: byDefault, Doc: doc, Value: config.Int(at),
		Range: func(s *settings) bool { return *at(s) == 0 || *at(s) >= least && *at(s) <= most },
	}
}

func durationField(key string, least, most time.Duration, byDefault, doc string, at func(*settings) *time.Duration) field {
	return field{
		Key: key, Allowed: fmt.Sprintf("a duration, `%s` to `%s`", least, most), Default: byDefault, Doc: doc, Value: config.Duration(at),
		Range: func(s *settings) bool { return *at(s) == 0 || *at(s) >= least && *at(s) <= most },
	}
}

// limitOK tells whether one field of a limit is in range by itself.
func limitOK(l throttle.Limit) bool { return l.Validate() == nil }

func isAddress(text string) bool {
	host, port, ok := splitAddress(text)
	if !ok || port == 0 {
		return false
	}
	_, err := netip.ParseAddr(host)
	return host == "" || host == "localhost" || err == nil
}
