package usage

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A place is where an object or array stands in an answer, as far as it matters.
type place uint8

const (
	nowhere    place = iota
	top              // the answer, or an item of the array that it is
	second           // an object in it
	response         // the object "response" in it
	choices          // the array "choices"
	choice           // an item of it
	candidates       // the array "candidates", of Gemini
	candidate        // an item of it
	meta             // the object "meta", of Cohere
)

// within returns the place of an object or array at a key of an object or array at p.
func (p place) within(key []byte, array bool) place {
	switch {
	case p == choices && !array:
		return choice
	case p == candidates && !array:
		return candidate
	case p != top && p != response:
		return nowhere
	case array && string(key) == "choices":
		return choices
	case array && string(key) == "candidates":
		return candidates
	case !array && string(key) == "meta":
		return meta
	case p == response:
		return nowhere
	case string(key) == "response":
		return response
	}
	return second
}

// counts reports whether a usage can stand in an object at p.
func (p place) counts() bool { return p == top || p == second || p == response || p == choice }

// A jsonScanner reads JSON texts byte by byte. It passes over everything else.
type jsonScanner struct {
	take   func(object []byte) bool
	status *status

	depth   int                 // open objects and arrays
	places  [deepestUsage]place // of the outermost of them
	arrays  [deepestUsage]bool
	base    bool // the text is an array, whose items are read like texts
	broken  bool // the text cannot be read to its end
	capture []byte
	outside int    // depth outside of the usage object under way
	ends    string // what is missing at its end

	inString, escaped bool
	quoted            bool   // word is a string that has ended
	word              []byte // the string under way or just ended, without quotes; or a literal
	key               []byte // of the value that comes
	keyed             bool   // key and a colon came last

	said remark // in the text under way
	here struct {
		index    int // of the choice under way
		finished bool
	}
}

// A remark is the content of a text about the answer.
type remark struct {
	usage, failure bool
	last, final    bool      // it is the API's last event
	message        bool      // it says why the message ended
	begun, finish  choiceSet // choices that are in it, and choices whose end it explains
}

// bedrockMetrics is the key of the usage in the last chunk of Bedrock's InvokeModelWithResponseStream.
const bedrockMetrics = "amazon-bedrock-invocationMetrics"

const (
	// deepestUsage is how deep a usage can stand: [{"response":{"choices":[{"usage"}]}}].
	deepestUsage = 5
	longestWord  = len(bedrockMetrics)
	longestUsage = 16 << 10
)

// byte takes the next byte.
func (s *jsonScanner) byte(b byte) {
	if s.capture != nil {
		if len(s.capture) >= longestUsage {
			s.capture, s.status.doubtful = nil, true
		} else {
			s.capture = append(s.capture, b)
		}
	}
	if s.inString {
		s.text(b)
		return
	}
	switch b {
	case ' ', '\t', '\r', '\n':
	case '"':
		if s.depth > 0 { // else it is no JSON
			s.broken = s.broken || len(s.word) > 0 || s.quoted
			s.clear()
			s.inString = true
		}
	case ':':
		s.key, s.keyed = append(s.key[:0], s.word...), s.quoted // {usage: 1} is no JSON
		s.broken = s.broken || s.depth > 0 && !s.quoted
		s.clear()
	case '{', '[':
		s.open(b == '[')
	case '}', ']':
		s.value()
		s.close(b == ']')
	case ',':
		s.value()
	default:
		if s.quoted { // as in {"usag"e: 1}: it is no JSON
			s.clear()
			s.broken = true
		}
		s.add(b)
	}
}

// add adds a byte to the word, of which no more is kept than tells it from all others.
func (s *jsonScanner) add(b byte) {
	if len(s.word) <= longestWord {
		s.word = append(s.word, b)
	}
}

// clear forgets the word.
func (s *jsonScanner) clear() { s.word, s.quoted = s.word[:0], false }

// text takes a byte within a string.
func (s *jsonScanner) text(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case b == '\\':
		s.escaped = true
	case b == '"':
		s.inString, s.quoted = false, true
		return
	}
	s.add(b)
}

// at is where the innermost object or array stands.
func (s *jsonScanner) at() place {
	if s.depth == 0 || s.depth > deepestUsage {
		return nowhere
	}
	return s.places[s.depth-1]
}

// open takes the beginning of an object or array.
func (s *jsonScanner) open(array bool) {
	at := top
	switch {
	case s.depth == 0:
		s.base = array
	case s.base && s.depth == 1:
	default:
		at = s.at()
		if s.keyed {
			s.opens(at, array)
		}
		key := s.key
		if !s.keyed {
			key = nil
		}
		at = at.within(key, array)
	}
	if s.depth < deepestUsage {
		s.places[s.depth], s.arrays[s.depth] = at, array
	}
	if at == choice || at == candidate {
		s.here.index, s.here.finished = 0, false
	}
	s.depth++
	s.keyed = false
	s.clear()
}

// opens takes the key of an object or array that begins within one at a place.
func (s *jsonScanner) opens(at place, array bool) {
	switch key := string(s.key); {
	case array || s.capture != nil:
	case at.counts() && (key == "usage" || key == "usageMetadata"):
		s.begin("{", "")
	case at == top && key == bedrockMetrics:
		s.said.message, s.said.last = true, true
		s.begin("{", "")
	case at == meta && (key == "tokens" || key == "billed_units"):
		s.begin(`{"`+key+`":{`, "}")
	}
	switch key := string(s.key); {
	case !array && at == top && key == "error":
		s.said.failure = true
	case at == choice && key == "delta":
		s.status.stream = true // a chunk, whatever comes behind it
	}
}

// begin begins a usage object, whose text is put between two others.
func (s *jsonScanner) begin(before, behind string) {
	s.capture, s.ends, s.outside = append(make([]byte, 0, 256), before...), behind, s.depth
}

// close takes the end of an object or array.
func (s *jsonScanner) close(array bool) {
	if s.depth == 0 {
		return
	}
	s.depth--
	if s.depth < deepestUsage && s.arrays[s.depth] != array {
		s.broken = true
	}
	s.keyed = false
	s.clear()
	if s.capture != nil && s.depth == s.outside {
		if s.broken || !s.take(append(s.capture, s.ends...)) {
			s.status.doubtful = true
		} else {
			s.said.usage = true
		}
		s.capture = nil
	}
	if s.depth < deepestUsage && (s.places[s.depth] == choice || s.places[s.depth] == candidate) {
		s.said.begun.add(s.here.index)
		if s.here.finished && s.here.index < manyChoices {
			s.said.finish.add(s.here.index)
		}
	}
	switch {
	case s.depth == 0 && s.base:
		s.status.texts++
	case s.depth == 0:
		s.status.texts++
		s.complete()
	case s.depth == 1 && s.base:
		s.complete()
	}
}

// lasts are the types of the last event of a stream: of Anthropic and Cohere (v2, v1).
var lasts = []string{"message_stop", "message-end", "stream-end"}

// reasons are the keys of the reason why a message ended: of Anthropic, Cohere and Bedrock.
var reasons = []string{"stop_reason", "finish_reason", "stopReason"}

// finals are the event types that only a whole answer has: of OpenAI's responses.
var finals = []string{"response.completed", "response.incomplete", "response.failed"}

// failures are reasons for an end that the model did not choose.
var failures = []string{
	"error", "failed", "abort", "aborted", "cancelled", "canceled", "timeout", "network_error", "server_error", "internal_error",
	"insufficient_system_resource",
}

// value takes the value of a key that is no object and no array, once it has ended.
func (s *jsonScanner) value() {
	defer func() {
		s.keyed = false
		s.clear()
	}()
	if !s.keyed || len(s.word) == 0 || string(s.word) == "null" {
		return
	}
	switch s.at() {
	case top:
		switch key := string(s.key); key {
		case "type", "event_type":
			s.said.last = s.said.last || slices.Contains(lasts, string(s.word))
			s.said.final = s.said.final || slices.Contains(finals, string(s.word))
		case "error":
			s.said.failure = s.said.failure || string(s.word) != "false"
		default:
			s.ended(key)
		}
	case second: // of the event in which a message of Anthropic, Cohere or Amazon's models ends
		s.ended(string(s.key))
	case choice, candidate:
		switch string(s.key) {
		case "finish_reason", "finishReason":
			s.here.finished = true
			s.reason()
		case "index":
			s.here.index = indexOf(string(s.word))
		}
	default:
	}
}

// ended takes a value that may be the reason why a message ended.
func (s *jsonScanner) ended(key string) {
	if slices.Contains(reasons, key) {
		s.said.message = true
		s.reason()
	}
}

// reason takes the reason why a choice or a message ended.
func (s *jsonScanner) reason() {
	if slices.Contains(failures, strings.ToLower(string(s.word))) {
		s.said.failure = true
	}
}

// indexOf returns the index of a choice; an invalid one counts among those from manyChoices on.
func indexOf(word string) int {
	n, err := strconv.ParseUint(word, 10, 31)
	if err != nil {
		return math.MaxInt
	}
	return int(n)
}

// complete takes the end of a text, or of an item of the array that it is.
func (s *jsonScanner) complete() {
	st, said := s.status, s.said
	if s.broken {
		st.doubtful = true
	}
	if said.usage && !s.broken {
		st.doubtful = false
	}
	st.failed = st.failed || said.failure
	st.begun |= said.begun
	st.finished |= said.finish
	st.message = st.message || said.message
	ends := said.finish != 0 || said.message
	st.counted = st.counted && !ends || said.usage && st.complete()
	st.ended = st.ended || said.last
	st.final = st.final || said.final
	s.said = remark{}
	if s.depth == 0 {
		s.broken = false
	}
}

// endText takes the end of a line: no string goes on after it.
func (s *jsonScanner) endText() {
	if s.inString {
		s.inString, s.escaped, s.broken = false, false, true
	}
}

// reset gives up a text that is not whole, if one is under way.
func (s *jsonScanner) reset() {
	if s.depth == 0 && !s.inString {
		s.clear()
		return
	}
	s.status.doubtful = true
	s.depth, s.base = 0, false
	s.forget()
}

// restart gives up the item of an array that is under way, or the text if it is none.
func (s *jsonScanner) restart() {
	if !s.base {
		s.reset()
		return
	}
	s.status.doubtful = true
	s.depth = min(s.depth, 1)
	s.forget()
}

func (s *jsonScanner) forget() {
	s.broken, s.inString, s.escaped, s.keyed, s.capture = false, false, false, false, nil
	s.clear()
	s.said = remark{}
}
