package usage

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// A figure is one kind of number in the usages of all dialects.
type figure uint8

// The figures of the prompt come first, then those of the answer, and the total last.
const (
	_            figure = iota
	chatPrompt          // the prompt with what of it concerns caches
	geminiPrompt        // the same, without the results of tools
	tools
	missed       // DeepSeek: the prompt without what came from a cache
	input        // the prompt without what concerns caches; in OpenAI's responses with it
	insideReads  // what came from a cache, as a part of the prompt
	insideWrites // what was put into one, as a part of the prompt
	inputReads   // the same, of OpenAI's responses
	inputWrites
	besideReads // the same, beside the prompt
	besideWrites
	writes5m // the writes by how long they last
	writes1h
	billedInput // Cohere: without what it added itself
	output
	geminiOutput // without thoughts
	thoughts
	reasoning // a part of output, for most services
	billedOutput
	total
	allFigures
)

// The most that is believed of a figure: more than any model takes or writes in one call.
const (
	mostPrompt = 2_000_000
	mostOutput = 1_000_000
)

// most returns the most that is believed of a figure.
func (f figure) most() int {
	switch {
	case f < output:
		return mostPrompt
	case f < total:
		return mostOutput
	}
	return mostPrompt + mostOutput
}

// fields are the names of the figures in usage objects: in lower case, without underscores, behind the names of the objects they are in. So
// inputTokens and input_tokens are one name.
var fields = map[string]figure{
	"prompttokens":            chatPrompt,
	"prompttokencount":        geminiPrompt,
	"tooluseprompttokencount": tools,
	"promptcachemisstokens":   missed,
	"inputtokens":             input,
	"inputtokencount":         input, // of Bedrock's invocation metrics
	"tokens.inputtokens":      input, // of Cohere
	"billedunits.inputtokens": billedInput,

	"cachedtokens":                            insideReads, // of Moonshot
	"cachedcontenttokencount":                 insideReads,
	"promptcachehittokens":                    insideReads,
	"prompttokensdetails.cachedtokens":        insideReads,
	"prompttokensdetails.cachewritetokens":    insideWrites,
	"prompttokensdetails.cachecreationtokens": insideWrites,
	"inputtokensdetails.cachedtokens":         inputReads,
	"inputtokensdetails.cachewritetokens":     inputWrites,
	"inputtokensdetails.cachecreationtokens":  inputWrites,
	"cachereadinputtokens":                    besideReads,
	"cachereadinputtokencount":                besideReads,
	"cachecreationinputtokens":                besideWrites,
	"cachewriteinputtokens":                   besideWrites,
	"cachewriteinputtokencount":               besideWrites,

	"cachecreation.ephemeral5minputtokens": writes5m,
	"cachecreation.ephemeral1hinputtokens": writes1h,
	"cachedetails.5m":                      writes5m, // of Bedrock converse
	"cachedetails.1h":                      writes1h,
	"prompttokensdetails.cachecreationtokendetails.ephemeral5minputtokens": writes5m, // of gateways
	"prompttokensdetails.cachecreationtokendetails.ephemeral1hinputtokens": writes1h,
	"prompttokensdetails.cachewritedetails.write5mtokens":                  writes5m,
	"prompttokensdetails.cachewritedetails.write1htokens":                  writes1h,

	"completiontokens":                        output,
	"outputtokens":                            output,
	"outputtokencount":                        output,
	"tokens.outputtokens":                     output,
	"billedunits.outputtokens":                billedOutput,
	"candidatestokencount":                    geminiOutput,
	"responsetokencount":                      geminiOutput, // of Gemini's live API
	"thoughtstokencount":                      thoughts,
	"reasoningtokens":                         reasoning,
	"completiontokensdetails.reasoningtokens": reasoning,
	"outputtokensdetails.reasoningtokens":     reasoning,

	"totaltokens":     total,
	"totaltokencount": total,
}

// groups are the objects in usage objects that have figures, by the start of their names.
var groups = func() map[string]bool {
	set := map[string]bool{}
	for name := range fields {
		for at, c := range name {
			if c == '.' {
				set[name[:at]] = true
			}
		}
	}
	return set
}()

// walk reads the figures in an object. within is the names of the objects around it, each with a dot. It returns false if it is no object.
func (r *Reader) walk(within string, object []byte) bool {
	var values map[string]json.RawMessage
	if json.Unmarshal(object, &values) != nil {
		return false
	}
	for name, value := range values {
		name = within + strings.ToLower(strings.ReplaceAll(name, "_", ""))
		switch f := fields[name]; {
		case f != 0:
			r.take(f, string(value))
		case name == "cachedetails":
			r.durations(name, value)
		case groups[name]:
			r.walk(name+".", value)
		}
	}
	return true
}

// durations reads Bedrock's list of how much was written to a cache for how long.
func (r *Reader) durations(name string, list []byte) {
	var details []struct {
		TTL         string          `json:"ttl"`
		InputTokens json.RawMessage `json:"inputTokens"`
	}
	_ = json.Unmarshal(list, &details) // empty if it is none
	for _, d := range details {
		if f := fields[name+"."+d.TTL]; f != 0 {
			r.take(f, string(d.InputTokens))
		}
	}
}

// take reads a figure, which may be in quotes, rounded up. What is no number does not count. A number that can't be is wrong.
func (r *Reader) take(f figure, text string) {
	n, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(text, `"`)), 64)
	switch {
	case err != nil && !math.IsInf(n, 0):
	case !(n >= 0 && n <= float64(f.most())): // also NaN
		r.wrong = r.wrong.with(f)
	default:
		r.has = r.has.with(f)
		r.most[f] = max(r.most[f], int(math.Ceil(n)))
	}
}

// A figureSet is a set of figures.
type figureSet uint32

// with returns the set with a figure.
func (s figureSet) with(f figure) figureSet { return s | 1<<f }

// any reports whether one of some figures is in the set.
func (s figureSet) any(of ...figure) bool {
	for _, f := range of {
		if s&(1<<f) != 0 {
			return true
		}
	}
	return false
}

// prompt reports whether a figure of the prompt is in the set.
func (s figureSet) prompt() bool { return s&(1<<output-1) != 0 }

// answer reports whether a figure of the answer is in the set.
func (s figureSet) answer() bool { return s&(1<<total-1)>>output != 0 }
