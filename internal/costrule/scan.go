package costrule

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// A Kind is the first byte of a JSON value, with '0' for all numbers and 't' for false, too.
type Kind byte

// The kinds.
const (
	Object Kind = '{'
	List   Kind = '['
	String Kind = '"'
	Figure Kind = '0'
	Bool   Kind = 't'
	Null   Kind = 'n'
)

// A Value is a JSON value: a whole scalar, or the beginning of an object or list.
type Value struct {
	Kind Kind
	// Raw is its source text, with the quotes of a string, up to Scanner.Keep bytes of it; nil for an object or list.
	Raw []byte
	// Len is its length in bytes, without quotes.
	Len int
	// Odd is how many bytes of a string are not base64.
	Odd int
	// Bytes and Chars are the length of a string without its escapes: in bytes of UTF-8, and in characters.
	Bytes, Chars int
}

// Text returns the text of a string, or the source of a number, true or false; empty for anything else.
func (v Value) Text() string {
	switch v.Kind {
	case String:
		var text string
		if json.Unmarshal(v.Raw, &text) != nil {
			return string(bytes.Trim(v.Raw, `"`))
		}
		return text
	case Figure, Bool:
		return string(v.Raw)
	default:
		return ""
	}
}

// Shown returns the value's source for logs and errors; for an object or list, its kind.
func (v Value) Shown() string {
	switch v.Kind {
	case Object:
		return "an object"
	case List:
		return "a list"
	default:
		return string(v.Raw)
	}
}

// Number parses a number, or a string that contains one; see the function Number. ok is also false for a string that is not kept completely.
func (v Value) Number() (n int, ok bool) {
	if v.Kind != Figure && v.Kind != String || v.Cut() {
		return 0, false
	}
	return Number(v.Text())
}

func (v Value) clone() Value {
	v.Raw = bytes.Clone(v.Raw)
	return v
}

// Cut reports whether only a part of a long string is kept.
func (v Value) Cut() bool { return v.Kind == String && len(v.Raw) < v.Len+len(`""`) }

// Tag is Text with one form for all spellings of a number: 43 for 43.0 and 4.3e1.
func (v Value) Tag() string {
	if v.Kind == Figure {
		return oneForm(v.Text())
	}
	return v.Text()
}

// A Scanner reads a JSON text that comes in pieces, once, without keeping it. At the first invalid byte it stops, and Broken reports it. It
// also accepts a byte order mark at the beginning, and NaN and Infinity, as Python does. Of strings it checks the escapes alone. It is not safe
// for concurrent use.
type Scanner struct {
	// Value is called with each value, outer ones first. Its argument is valid only during the call.
	Value func(v Value)
	// Keep is how many bytes of a value are kept.
	Keep int

	levels []level
	keys   []byte // of the levels, one behind the other
	next   place
	at     int  // how many bytes were read, as far as a mark may go
	broken bool // no more values are reported

	raw     []byte // of the scalar that is being read
	now     Value
	reading bool
	isKey   bool
	escape  int // of a string: afterBackslash, or how many hexadecimal digits come; 0: none
	point   int // the number in the hexadecimal digits so far
	half    int // Chars when the first half of a character had come; noHalf: none, or both
}

const (
	afterBackslash = -1
	noHalf         = -1
)

// A level is an object or list that is open.
type level struct {
	list  bool
	index int // in a list
	key   int // where in keys that of an object begins
}

const (
	deepest = 1000
	mark    = "\ufeff" // of byte order
)

// A place is the expected next part of a text.
type place int

const (
	atValue      place = iota
	atFirstValue       // or the end of the list
	atKey
	atFirstKey // or the end of the object
	atColon
	atComma // or the end of what is around it
)

// Write reads the next piece. It never fails.
func (s *Scanner) Write(p []byte) (int, error) {
	for i := 0; i < len(p) && !s.broken; i++ {
		if s.reading && s.now.Kind == String {
			i += s.text(p[i:]) - 1
			continue
		}
		s.structure(p[i])
	}
	return len(p), nil
}

// End ends the text: a number at its end is complete, and any other unfinished value is broken.
func (s *Scanner) End() {
	if s.reading && s.now.Kind != String {
		s.finish()
	}
	s.broken = s.broken || s.reading || len(s.levels) > 0
}

// Broken reports whether the text read so far is invalid, or nested more than 1,000 levels deep. Then the values before are uncertain, too:
// others may read the text differently.
func (s *Scanner) Broken() bool { return s.broken }

// Unfinished returns the string being read; false for none.
func (s *Scanner) Unfinished() (Value, bool) {
	v := s.now
	v.Raw = s.raw
	return v, s.reading && !s.isKey && v.Kind == String
}

// text reads bytes of a string, and returns their number.
func (s *Scanner) text(p []byte) int {
	for i, b := range p {
		switch {
		case s.escape != 0:
			if s.broken = !s.escaped(b); s.broken {
				return len(p)
			}
		case b == '\\':
			s.escape = afterBackslash
		case b == '"':
			s.keep(p[:i+1])
			s.now.Len += i
			s.finish()
			return i + 1
		default:
			s.now.Bytes++
			if b&0xc0 != 0x80 { // the first byte of a character
				s.now.Chars++
			}
			if !ofBase64[b] {
				s.now.Odd++
			}
		}
	}
	s.keep(p)
	s.now.Len += len(p)
	return len(p)
}

// escaped reads a byte of an escape, and reports whether it is a valid one: some readers accept others, each in its own way.
func (s *Scanner) escaped(b byte) bool {
	if s.escape != afterBackslash {
		digit, err := strconv.ParseUint(string(b), 16, 8)
		s.point = s.point<<4 | int(digit)
		if s.escape--; s.escape == 0 {
			s.count(rune(s.point))
		}
		return err == nil
	}
	s.escape = 0
	if b == 'u' {
		s.escape, s.point = 4, 0
		s.now.Odd++
		return true
	}
	s.now.Bytes++
	s.now.Chars++
	switch b {
	case '"', '\\', 'b', 'f', 't':
		s.now.Odd++
	case '/', 'n', 'r': // may be in base64
	default:
		return false
	}
	return true
}

// count counts an escaped character, or a half of one: without the other half readers put U+FFFD in its place.
func (s *Scanner) count(r rune) {
	if s.half == s.now.Chars && r>>10 == 0xdc00>>10 {
		s.now.Bytes++ // four for both halves
		s.half = noHalf
		return
	}
	s.now.Bytes += len(string(r))
	s.now.Chars++
	if r>>10 == 0xd800>>10 {
		s.half = s.now.Chars
	}
}

func (s *Scanner) keep(p []byte) {
	s.raw = append(s.raw, p[:min(len(p), max(s.Keep-len(s.raw), 0))]...)
}

// ofBase64 are the bytes of base64, in both alphabets.
var ofBase64 = func() (set [256]bool) {
	for _, b := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=") {
		set[b] = true
	}
	return set
}()

// Odd returns how many bytes of a text are not base64, in either alphabet.
func Odd(p []byte) (n int) {
	for _, b := range p {
		if !ofBase64[b] {
			n++
		}
	}
	return n
}

// structure reads a byte outside of strings.
func (s *Scanner) structure(b byte) {
	if s.reading {
		switch b {
		case ',', ']', '}', ':', '"', '{', '[', ' ', '\t', '\r', '\n':
			s.finish()
		default:
			s.keep([]byte{b})
			s.now.Len++
			return
		}
		if s.broken {
			return
		}
	}
	top := s.top()
	switch b {
	case ' ', '\t', '\r', '\n':
	case '{', '[':
		s.open(b)
	case '}', ']':
		s.close(b, top)
	case ',':
		if s.broken = top == nil || s.next != atComma; s.broken {
			return
		}
		top.index++
		if s.next = atKey; top.list {
			s.next = atValue
		}
	case ':':
		s.broken = s.next != atColon
		s.next = atValue
	default:
		if len(s.levels) == 0 && s.at < len(mark) && b == mark[s.at] {
			s.at++
			return
		}
		s.begin(b)
	}
	s.at = len(mark)
}

// open begins an object or a list.
func (s *Scanner) open(b byte) {
	if s.broken = s.next > atFirstValue || len(s.levels) == deepest; s.broken {
		return
	}
	s.tell(Value{Kind: Kind(b)})
	s.levels = append(s.levels, level{list: b == '[', key: len(s.keys)})
	if s.next = atFirstKey; b == '[' {
		s.next = atFirstValue
	}
}

// close ends one.
func (s *Scanner) close(b byte, top *level) {
	empty := atFirstKey
	if b == ']' {
		empty = atFirstValue
	}
	if s.broken = top == nil || top.list != (b == ']') || s.next != atComma && s.next != empty; s.broken {
		return
	}
	s.keys = s.keys[:top.key]
	s.levels = s.levels[:len(s.levels)-1]
	s.next = atComma
}

// begin begins a scalar, or a key.
func (s *Scanner) begin(b byte) {
	s.isKey = b == '"' && (s.next == atKey || s.next == atFirstKey)
	if s.broken = s.next > atFirstValue && !s.isKey; s.broken {
		return
	}
	s.reading, s.escape, s.half = true, 0, noHalf
	s.raw = s.raw[:0]
	s.now = Value{Kind: Figure, Len: 1}
	switch b {
	case '"':
		s.now = Value{Kind: String}
	case 't', 'f':
		s.now.Kind = Bool
	case 'n':
		s.now.Kind = Null
	}
	s.keep([]byte{b})
}

// finish ends a scalar, or a key.
func (s *Scanner) finish() {
	s.reading = false
	s.now.Raw = s.raw
	if !s.isKey {
		s.next = atComma
		if s.broken = s.now.Kind != String && !isLiteral(s.raw, s.now.Len); !s.broken {
			s.tell(s.now)
		}
		return
	}
	s.next = atColon
	top := s.top()
	s.keys = s.keys[:top.key]
	if bytes.Contains(s.raw, []byte{'\\'}) {
		s.keys = append(s.keys, s.now.Text()...)
		return
	}
	s.keys = append(s.keys, bytes.Trim(s.raw, `"`)...)
}

// isLiteral reports whether a scalar that is not a string is a valid one of JSON or Python, which is kept completely.
func isLiteral(raw []byte, length int) bool {
	switch string(raw) {
	case "NaN", "Infinity", "-Infinity":
		return true
	}
	return len(raw) == length && json.Valid(raw)
}

func (s *Scanner) tell(v Value) {
	if s.Value != nil {
		s.Value(v)
	}
}

func (s *Scanner) top() *level {
	if len(s.levels) == 0 {
		return nil
	}
	return &s.levels[len(s.levels)-1]
}

// Depth returns the number of objects and lists around the current value.
func (s *Scanner) Depth() int { return len(s.levels) }

// InList reports whether the current value is in a list.
func (s *Scanner) InList() bool {
	top := s.top()
	return top != nil && top.list
}

// Key returns the name of the current value, or that of the object around it (1) and so on. Lists have no names, so their values have the
// list's own name. Empty if there is none.
func (s *Scanner) Key(out int) string {
	for i, l := range slices.Backward(s.levels) {
		if l.list {
			continue
		}
		if out == 0 {
			return string(s.key(i))
		}
		out--
	}
	return ""
}

func (s *Scanner) key(i int) []byte {
	end := len(s.keys)
	if i+1 < len(s.levels) {
		end = s.levels[i+1].key
	}
	return s.keys[s.levels[i].key:end]
}

// match reports whether the current value is at a path, exactly or in another spelling of its names. plain has the names of the path in the
// form of Plain.
func (s *Scanner) match(p, plain Path) (exact, spelled bool) {
	if len(p) != len(s.levels) {
		return false, false
	}
	exact = true
	for i := len(p) - 1; i >= 0; i-- {
		if l := &s.levels[i]; l.list {
			if n, err := strconv.Atoi(p[i]); err != nil || n != l.index {
				return false, false
			}
		} else if key := s.key(i); string(key) != p[i] {
			if exact = false; !isPlain(key, plain[i]) {
				return false, false
			}
		}
	}
	return exact, !exact
}
