package httpproxy

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A meterRule returns the meter of an answer.
type meterRule func(res *http.Response) httpthrottle.Meter

// settleUsage is the setting that reads the usage from answers.
const settleUsage = "usage"

// parseSettle parses the rule for the final cost of a request; a nil rule is the drawn tokens. ok is false for an invalid text. log records
// answers without a cost.
func parseSettle(text string, log *slog.Logger) (rule meterRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "", text == "drawn":
		return nil, true
	case text == settleUsage:
		usage := httpthrottle.UsageMeter(nil) //nolint:bodyclose // it is handed a response, and makes none
		return func(res *http.Response) httpthrottle.Meter {
			m := usage(res)
			if m, ok := m.(httpthrottle.EndMeter); ok && !reportsUsage(res.Header.Get("Content-Type")) {
				return headOnly{m} // a file or a page, which may hold anything
			}
			return m
		}, true
	case word == "header" && isHeaderName(argument):
		var complaint costrule.Complaint
		return func(res *http.Response) httpthrottle.Meter {
			value := res.Header.Get(argument)
			n, ok := costrule.Number(value)
			switch {
			case value == "":
				return nil
			case !ok || n > maxCost:
				complaint.Tell(log, "header "+argument+" of the answer", value, "the request costs what it drew")
				return nil
			}
			return reported(n)
		}, true
	}
	return nil, false
}

// headOnly is a meter that reads only the head of the answer.
type headOnly struct{ httpthrottle.EndMeter }

// Write implements io.Writer.
func (headOnly) Write(p []byte) (int, error) { return len(p), nil }

// UsedUntil implements httpthrottle.EndMeter.
func (h headOnly) UsedUntil(complete bool) (tokens int, final bool) {
	tokens, _ = h.EndMeter.UsedUntil(complete)
	return tokens, complete && tokens > 0
}

// reportsUsage reports whether an answer of a type can be that of an LLM: JSON, lines of it, or events.
func reportsUsage(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); kind {
	case "application/json", "text/json", "application/x-json", "text/event-stream", "application/vnd.amazon.eventstream", "application/x-ndjson",
		"application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json-lines":
		return true
	}
	return strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

// reported is the meter of an answer whose header states its cost.
type reported int

// Write implements io.Writer.
func (reported) Write(p []byte) (int, error) { return len(p), nil }

// Used implements httpthrottle.Meter.
func (t reported) Used() (int, bool) { return int(t), true }
