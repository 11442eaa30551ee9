package handlerproxy

import (
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// allowedCost describes valid costs, for settings and their faults.
const allowedCost = "a whole number, `bytes/N` with N above 0, `header NAME`, or `json PATH` such as `usage.tokens`"

// A costRule reads the cost of a message. If it cannot be read, the cost is the result of unreadable for its place and text.
type costRule func(value func() []byte, headers func() map[string]string, unreadable func(place, text string) int) int

// parseCost parses a cost; a nil rule is one token for each message. ok is false for an invalid text.
func parseCost(text string) (cost costRule, ok bool) {
	word, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	switch {
	case text == "" || text == "1":
		return nil, true
	case word == "header" && argument != "":
		return headerCost(argument), true
	case word == "json":
		path, ok := costrule.ParsePath(argument)
		return jsonCost(path), ok
	case strings.HasPrefix(text, "bytes/"):
		per, err := strconv.ParseInt(strings.TrimPrefix(text, "bytes/"), 10, 32)
		if err != nil || per < 1 {
			return nil, false
		}
		of := admission.PayloadCost(int(per))
		return func(value func() []byte, _ func() map[string]string, _ func(string, string) int) int {
			return of(value())
		}, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return nil, false
	}
	return func(func() []byte, func() map[string]string, func(string, string) int) int { return int(n) }, true
}

// headerCost reads the cost from a header. Without the header a message costs one token.
func headerCost(name string) costRule {
	return func(_ func() []byte, headers func() map[string]string, unreadable func(place, text string) int) int {
		text, ok := headers()[name]
		if !ok {
			return 1
		}
		if n, ok := costrule.Number(text); ok {
			return n
		}
		return unreadable("header "+name, text)
	}
}

// jsonCost reads the cost from path in a payload. If there is nothing or null, a message costs one token. The cost of an invalid JSON
// payload cannot be read, unless it is empty.
func jsonCost(path costrule.Path) costRule {
	return func(value func() []byte, _ func() map[string]string, unreadable func(place, text string) int) int {
		place := "json " + strings.Join(path, ".")
		found, ok, fault := costrule.Find(value(), path)
		switch {
		case fault != "":
			return unreadable(place, fault)
		case !ok:
			return 1
		}
		if n, ok := found.Number(); ok {
			return n
		}
		return unreadable(place, found.Shown())
	}
}

// unreadable logs that a cost cannot be read, and returns the cost to use: so high that the message is denied. A source has already read
// its messages.
func (p *proxy) unreadable() func(place, text string) int {
	cost, outcome := costrule.Ungrantable, "denied, with the reason too_large; onDenied says what becomes of it"
	if p.Kind == Source {
		cost, outcome = 1, admission.ReadAlready
	}
	var complaint costrule.Complaint
	return func(place, text string) int {
		complaint.Tell(p.log, place, text, outcome)
		return cost
	}
}

// costOf returns the function for the cost of a message; nil: one token.
func (p *proxy) costOf() func(value func() []byte, headers func() map[string]string) int {
	rule, _ := parseCost(p.Cost)
	if rule == nil {
		return nil
	}
	unreadable := p.unreadable()
	return func(value func() []byte, headers func() map[string]string) int {
		return rule(value, headers, unreadable)
	}
}
