package outbound

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/internal/redact"
)

// A Dump logs requests as they are sent, for debugging, without known secrets and texts that look like secrets. It logs a few a second, and
// counts the others. It shows message data unchanged. Sent is safe for concurrent use.
type Dump struct {
	// Log receives the lines.
	Log *slog.Logger
	// Bytes is how many bytes of a body are shown.
	Bytes int
	// HidePath omits everything after the host of a URL.
	HidePath bool
	// Hidden are the names of further headers with hidden values, such as the header for a key.
	Hidden []string
	// Secrets are removed wherever they occur.
	Secrets []program.Credential

	limiter *rate.Limiter
	skipped atomic.Int64
}

// dumpsPerSecond and dumpsAtOnce bound the logged requests.
const (
	dumpsPerSecond = 5
	dumpsAtOnce    = 20
)

// NewDump returns a Dump; its other fields may be set before it is used.
func NewDump(log *slog.Logger, most int) *Dump {
	return &Dump{Log: log, Bytes: most, limiter: rate.NewLimiter(dumpsPerSecond, dumpsAtOnce)}
}

// longestSecret is how many bytes beyond the shown part of a body are searched for secrets.
const longestSecret = 4096

// Sent logs a request that is about to be sent, with the body before compression. A nil Dump logs nothing.
func (d *Dump) Sent(req *http.Request, body []byte) {
	if d == nil {
		return
	}
	if !d.limiter.Allow() {
		d.skipped.Add(1)
		return
	}
	hide := d.hider()
	// A part of a secret at the end would not be found, so the search goes beyond the shown part.
	shown := hide(strings.ToValidUTF8(string(body[:min(len(body), d.Bytes+longestSecret)]), "\uFFFD"))
	d.Log.LogAttrs(context.WithoutCancel(req.Context()), slog.LevelInfo, "dump of a request",
		slog.String("method", req.Method), slog.String("url", hide(d.url(req.URL))), slog.String("headers", hide(d.headers(req.Header))),
		slog.String("body", strings.ToValidUTF8(shown[:min(len(shown), d.Bytes)], "")), slog.Int("bytes", len(body)),
		slog.Int64("leftOut", d.skipped.Swap(0)))
}

// hider returns a function that removes secrets from a text.
func (d *Dump) hider() func(string) string {
	var secrets []string
	for _, c := range d.Secrets {
		if text, err := c.ReadRaw(); err == nil && text != "" {
			secrets = append(secrets, text)
		}
	}
	r := redact.New(secrets...)
	return func(text string) string {
		text = r.Text(text)
		for _, secret := range secrets {
			text = strings.ReplaceAll(text, secret, redact.Hidden) // one that is too short for a Redactor
		}
		return text
	}
}

// url returns a URL without the values of secret parameters.
func (d *Dump) url(u *url.URL) string {
	if d.HidePath {
		return u.Scheme + "://" + u.Host + "/" + redact.Hidden
	}
	shown := *u
	shown.User, shown.RawQuery = nil, ""
	var parts []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, found := strings.Cut(part, "=")
		if decoded, err := url.QueryUnescape(name); found && (err != nil || redact.IsSecretName(decoded)) {
			part = name + "=" + redact.Hidden
		}
		parts = append(parts, part)
	}
	text := shown.String()
	if u.RawQuery != "" {
		text += "?" + strings.Join(parts, "&")
	}
	return text
}

// headers returns the lines of a header, in the order of their names.
func (d *Dump) headers(h http.Header) string {
	shown := http.Header{}
	for name, values := range h {
		if redact.IsSecretName(name) || slices.ContainsFunc(d.Hidden, func(hidden string) bool { return strings.EqualFold(hidden, name) }) {
			values = []string{redact.Hidden}
		}
		shown[name] = values
	}
	var b strings.Builder
	_ = shown.Write(&b) // a strings.Builder takes everything
	return strings.TrimSuffix(strings.ReplaceAll(b.String(), "\r\n", "\n"), "\n")
}
