package calls

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// classifiers are those that options name.
var classifiers = map[string]httpthrottle.Classifier{
	"": nil, "OpenAI": httpthrottle.OpenAI, "Azure": httpthrottle.Azure, "Anthropic": httpthrottle.Anthropic, "Gemini": httpthrottle.Gemini,
	"Generic": httpthrottle.Generic, "busy": busy,
}

// busy takes any answer with the header Busy, of whose body nothing is known, for a refusal that asks for a wait of so many seconds.
func busy(a httpthrottle.Answer) (httpthrottle.Refusal, bool) {
	seconds, err := strconv.Atoi(a.Header.Get("Busy"))
	return httpthrottle.Refusal{Class: httpthrottle.Wait, RetryAfter: time.Duration(seconds) * time.Second, NotProcessed: true}, err == nil && a.Body == nil
}

// options takes the options of a client.
func (o *Order) options() (opts []httpthrottle.Option) {
	for name, option := range map[string]func(time.Duration) httpthrottle.Option{
		"maxwait": httpthrottle.WithMaxWait, "maxelapsed": httpthrottle.WithMaxElapsed, "maxpause": httpthrottle.WithMaxPause,
	} {
		if d := o.Value(name); d != "" {
			opts = append(opts, option(o.Time(d)))
		}
	}
	if n := o.Value("attempts"); n != "" {
		opts = append(opts, httpthrottle.WithMaxAttempts(int(o.Number(n))))
	}
	if n := o.Value("buffer"); n != "" {
		opts = append(opts, httpthrottle.WithBodyBuffer(int64(o.Number(n))))
	}
	if n := o.Value("cost"); n != "" {
		cost := int(o.Number(n))
		opts = append(opts, httpthrottle.WithCost(func(*http.Request) int { return cost }))
	}
	switch key := o.Value("key"); key {
	case "":
	case "random":
		opts = append(opts, httpthrottle.WithIdempotencyKey(nil))
	default:
		n := 0
		opts = append(opts, httpthrottle.WithIdempotencyKey(func(*http.Request) string { n++; return fmt.Sprint(key, "-", n) }))
	}
	if o.Is("failures") {
		opts = append(opts, httpthrottle.RetryFailures())
	}
	if o.Is("errors") {
		opts = append(opts, httpthrottle.RefusalsAsErrors())
	}
	tag := func(r *http.Request) string { return r.Header.Get("Tag") }
	if o.Is("host") {
		tag = httpthrottle.Host
	}
	feedback := map[string]httpthrottle.Feedback{"pause": o.pause, "notes": o.notes, "noted": noted{o.pause, o.notes}}[o.Value("feedback")]
	if m := o.Value("meter"); m != "" {
		opts = append(opts, httpthrottle.WithMeter(func(*http.Response) httpthrottle.Meter {
			return map[string]httpthrottle.Meter{"bytes": &bytesRead{}, "unknown": &bytesRead{unknown: true}}[m]
		}))
	}
	classify := o.Value("classify")
	require.Contains(o.T, classifiers, classify, o.Line)
	return append(opts, httpthrottle.WithTag(tag), httpthrottle.WithFeedback(feedback), httpthrottle.WithClassifier(classifiers[classify]),
		httpthrottle.WithLogger(slog.New(&o.journal)))
}

// Answer adds the answer that the command describes to the service's script.
func (o *Order) Answer(status string) {
	a := &answer{host: o.Value("host"), takes: o.Time(o.Value("takes")), every: o.Time(o.Value("every")), end: io.EOF, header: http.Header{}, text: "fine"}
	if status != "reset" {
		a.status = int(o.Number(status))
	}
	if a.status >= http.StatusBadRequest {
		a.text = `{"error":{"message":"slow down"}}`
	}
	if end := o.Value("end"); end != "" {
		a.end = map[string]error{"never": errNever, "broken": errBroken}[end]
	}
	code, message, size := o.Value("code"), o.Value("message"), int(o.Number(o.Value("size")))
	switch {
	case code != "":
		a.text = `{"error":{"code":"` + code + `"}}`
	case message != "":
		a.text = `{"error":{"message":"` + strings.ReplaceAll(message, "_", " ") + `"}}`
	case size > 0:
		a.text = strings.Repeat("x", size)
	}
	if text, ok := o.Set["text"]; ok {
		a.text = o.Unquoted(strings.Trim(text, "-"))
		o.Value("text")
	}
	a.kind = o.Word("")
	o.headers(a.header)
	o.service.mu.Lock()
	defer o.service.mu.Unlock()
	o.service.script = append(o.service.script, a)
}

// headers takes all settings that are left as headers.
func (o *Order) headers(h http.Header) {
	for name, value := range o.Set {
		h.Set(name, o.Unquoted(value))
	}
	clear(o.Set)
}

// many matches a letter and how often it comes.
var many = regexp.MustCompile(`(\\x..|.)…(\d+)`)

// Unquoted returns a text with escapes such as "\x20", and letters that are repeated.
func (o *Order) Unquoted(value string) string {
	value = many.ReplaceAllStringFunc(value, func(s string) string {
		letter, times, _ := strings.Cut(s, "…")
		return strings.Repeat(letter, int(o.Number(times)))
	})
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(value, `"`, `\"`) + `"`)
	require.NoError(o.T, err, o.Line)
	return text
}
