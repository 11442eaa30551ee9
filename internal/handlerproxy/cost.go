package handlerproxy

import (
	"math"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
)

// allowedCost is what a cost can be, for settings and their faults.
const allowedCost = "a whole number, `bytes/N` with N above 0, `header NAME`, or `json PATH` such as `usage.tokens`"

// A costRule is where the cost of a message stands.
type costRule func(value func() []byte, headers func() map[string]string) int

// parseCost reads a cost; a nil rule is one token for each message. ok is false for a text that is none.
func parseCost(text string) (cost costRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "" || text == "1":
		return nil, true
	case word == "header" && argument != "":
		of := admission.HeaderCost(argument)
		return func(_ func() []byte, headers func() map[string]string) int { return of(headers()) }, true
	case word == "json" && admission.IsPath(argument):
		path := strings.Split(argument, ".")
		return func(value func() []byte, _ func() map[string]string) int { return jsonCost(value(), path) }, true
	case strings.HasPrefix(text, "bytes/"):
		per, err := strconv.ParseInt(strings.TrimPrefix(text, "bytes/"), 10, 32)
		if err != nil || per < 1 {
			return nil, false
		}
		of := admission.PayloadCost(int(per))
		return func(value func() []byte, _ func() map[string]string) int { return of(value()) }, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return nil, false
	}
	return func(func() []byte, func() map[string]string) int { return int(n) }, true
}

// jsonCost is the number that stands at path in a payload, rounded up. A negative one counts as zero. Without a number
// there a message costs one token.
func jsonCost(payload []byte, path []string) int {
	raw, ok := admission.JSONAt(payload, path)
	if !ok {
		return 1
	}
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || math.IsNaN(n) {
		return 1
	}
	return int(min(max(math.Ceil(n), 0), math.MaxInt32))
}
