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
		return httpthrottle.UsageMeter(nil), true //nolint:bodyclose // it is handed a response, and makes none
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
			return told(n)
		}, true
	}
	return nil, false
}

// told is the meter of an answer whose header states its cost.
type told int

// Write implements io.Writer.
func (told) Write(p []byte) (int, error) { return len(p), nil }

// Used implements httpthrottle.Meter.
func (t told) Used() (int, bool) { return int(t), true }
