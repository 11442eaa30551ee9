package httpproxy

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
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
		return func(res *http.Response) httpthrottle.Meter {
			m := usage.NewMeter(res, nil)
			if !account.ReportsUsage(res.Header.Get("Content-Type")) {
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

// reported is the meter of an answer whose header states its cost.
type reported int

// Write implements io.Writer.
func (reported) Write(p []byte) (int, error) { return len(p), nil }

// Used implements httpthrottle.Meter.
func (t reported) Used() (int, bool) { return int(t), true }
