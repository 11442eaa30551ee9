package httpthrottle

// A usageScanner finds the usage objects in a stream of JSON texts, of any length, that
// come in pieces: a JSON body, the data lines of server-sent events, or an array that
// grows. It keeps no more than one key or one usage object.
//
// Only keys near the top count, for what a model writes may have such keys too:
// arguments of tools are objects further down.
type usageScanner struct {
	depth    int    // open objects and arrays
	inString bool   // within a string
	escaped  bool   // the last byte of the string was a backslash
	word     []byte // the string under way or just ended, without quotes, as far as it can matter
	keyed    bool   // word and a colon came last
	capture  []byte // the usage object under way; nil for none
	captured int    // depth outside of it
}

const (
	// deepestUsage is where a usage can stand: {"usage"}, {"response":{"usage"}},
	// [{"usageMetadata"}].
	deepestUsage = 2
	longestKey   = len("usageMetadata")
	longestUsage = 16 << 10
)

// feed scans the next piece and hands each usage object that ends in it to take.
func (s *usageScanner) feed(p []byte, take func(object []byte)) {
	for _, b := range p {
		if s.capture != nil {
			if len(s.capture) >= longestUsage {
				s.capture = nil
			} else {
				s.capture = append(s.capture, b)
			}
		}
		switch {
		case b == '\n': // never within a string; events begin anew after it
			s.inString, s.escaped = false, false
		case s.inString:
			s.text(b)
		default:
			s.mark(b, take)
		}
	}
}

// text takes a byte within a string.
func (s *usageScanner) text(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case b == '\\':
		s.escaped = true
	case b == '"':
		s.inString = false
		return
	}
	if len(s.word) <= longestKey {
		s.word = append(s.word, b)
	}
}

// mark takes a byte between strings.
func (s *usageScanner) mark(b byte, take func(object []byte)) {
	switch b {
	case ' ', '\t', '\r':
		return
	case '"':
		if s.depth > 0 { // else it is no JSON
			s.inString, s.word = true, s.word[:0]
		}
		s.keyed = false
	case ':':
		s.keyed = true
	case '{', '[':
		if b == '{' && s.keyed && s.capture == nil && s.depth <= deepestUsage && (string(s.word) == "usage" || string(s.word) == "usageMetadata") {
			s.capture, s.captured = append(make([]byte, 0, 256), '{'), s.depth
		}
		s.depth++
		s.keyed = false
	case '}', ']':
		s.depth = max(s.depth-1, 0)
		s.keyed = false
		if s.capture != nil && s.depth == s.captured {
			take(s.capture)
			s.capture = nil
		}
	default:
		s.keyed = false
		s.word = s.word[:0]
	}
}
