package httpproxy

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A meterRule makes the meter of an answer.
type meterRule func(res *http.Response) httpthrottle.Meter

// parseSettle reads what a request costs in the end; a nil rule is what was drawn. ok is false for a text that says nothing.
func parseSettle(text string) (rule meterRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "", text == "drawn":
		return nil, true
	case text == "usage":
		return httpthrottle.UsageMeter(nil), true //nolint:bodyclose // it is handed a response, and makes none
	case word == "header" && isHeaderName(argument):
		return func(res *http.Response) httpthrottle.Meter {
			n, err := strconv.Atoi(res.Header.Get(argument))
			if err != nil || n < 0 || n > maxCost {
				return nil
			}
			return told(n)
		}, true
	}
	return nil, false
}

// told is the meter of an answer that has said at its head what it cost.
type told int

// Write implements io.Writer.
func (told) Write(p []byte) (int, error) { return len(p), nil }

// Used implements httpthrottle.Meter.
func (t told) Used() (int, bool) { return int(t), true }
