package httpthrottle

import "slices"

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
)

// within returns where an object or array stands that is at a key of one that stands at p.
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
	case array || p == response:
		return nowhere
	case string(key) == "response":
		return response
	}
	return second
}

// counts tells whether a usage can stand in an object at p.
func (p place) counts() bool { return p == top || p == second || p == response || p == choice }

// A jsonScanner reads JSON texts byte by byte. What is no JSON it passes over.
type jsonScanner struct {
	take   func(object []byte) bool
	status *status

	depth   int                 // open objects and arrays
	places  [deepestUsage]place // of the outermost of them
	arrays  [deepestUsage]bool
	base    bool // the text is an array, whose items are read like texts
	broken  bool // the text cannot be read to its end
	capture []byte
	outside int // depth outside of the usage object under way

	inString, escaped bool
	quoted            bool   // word is a string that has ended
	word              []byte // the string under way or just ended, without quotes; or a literal
	key               []byte // of the value that comes
	keyed             bool   // key and a colon came last

	usage, finish, failure, last bool // what the text under way has
}

const (
	// deepestUsage is how deep a usage can stand: [{"choices":[{"usage"}]}].
	deepestUsage = 5
	longestWord  = len("response.incomplete") + 1
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
		s.key, s.keyed = append(s.key[:0], s.word...), true
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
		if len(s.word) <= longestWord {
			s.word = append(s.word, b)
		}
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
	if len(s.word) <= longestWord {
		s.word = append(s.word, b)
	}
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
		if s.keyed && !array && s.capture == nil && at.counts() && (string(s.key) == "usage" || string(s.key) == "usageMetadata") {
			s.capture, s.outside = append(make([]byte, 0, 256), '{'), s.depth
		}
		if s.keyed && at == top && string(s.key) == "error" && !array {
			s.failure = true
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
	s.depth++
	s.keyed = false
	s.clear()
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
		if s.broken || !s.take(s.capture) {
			s.status.doubtful = true
		} else {
			s.usage = true
		}
		s.capture = nil
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

// lasts are the types of events that are the last with a usage: of Anthropic, OpenAI's responses and Cohere.
var lasts = []string{"message_stop", "response.completed", "response.incomplete", "response.failed", "message-end"}

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
		switch string(s.key) {
		case "type":
			s.last = s.last || slices.Contains(lasts, string(s.word))
		case "error":
			s.failure = true
		}
	case choice:
		s.finish = s.finish || string(s.key) == "finish_reason"
	case candidate:
		s.finish = s.finish || string(s.key) == "finishReason"
	default:
	}
}

// complete takes the end of a text, or of an item of the array that it is.
func (s *jsonScanner) complete() {
	st := s.status
	if s.broken {
		st.doubtful = true
	}
	if s.usage && !s.broken {
		st.doubtful = false
	}
	st.failed = st.failed || s.failure && (st.stream || s.base)
	st.finished = st.finished || s.finish
	st.counted = st.counted && !s.finish || s.usage && st.finished
	st.ended = st.ended || s.last
	s.usage, s.finish, s.failure, s.last = false, false, false, false
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
	s.usage, s.finish, s.failure, s.last = false, false, false, false
}
