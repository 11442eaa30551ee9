package usage

import "bytes"

// A scanner reads an answer of an LLM, of any length, in pieces. The answer is a JSON body, an array that grows, JSON texts of a line
// each, or server-sent events. The scanner finds the usage objects, and the signs that the answer is whole. It keeps no more than one key,
// one short value and one usage object.
//
// Only keys near the top count, for the output of a model may have such keys too: arguments of tools are objects further down.
//
// A broken event hides no other: each one is read from its start.
type scanner struct {
	// take is called with each usage object, and returns false if it is none.
	take func(object []byte) bool
	// lines means that each line is a JSON text of its own.
	lines bool

	begun  bool   // something other than white space has come
	events bool   // server-sent events
	mark   []byte // the byte-order mark, as far as it has come
	cr     bool   // the last byte was a carriage return
	field  []byte // the name of the line's field, as far as it can matter; of events only
	inData bool   // the field's value is under way, and is data
	first  bool   // the next byte is the first of the line's value
	column int    // bytes of the line so far; of JSON only
	json   jsonScanner
	status status
}

// A status is the state of an answer so far.
type status struct {
	texts    int       // JSON texts that are complete
	stream   bool      // more is to be expected after a JSON text
	begun    choiceSet // choices and candidates that have come
	finished choiceSet // those that said why they ended
	message  bool      // the message said so, where an API has one and no choices
	counted  bool      // a usage came with or after the last that said so
	ended    bool      // the stream says that it is over
	final    bool      // the API's last event has come, which it sends for a whole answer only
	failed   bool      // an event is an error
	doubtful bool      // something was broken, and no usage has come since
}

// A choiceSet is a set of choices, by their index. Choices from manyChoices on count as one, which never finishes.
type choiceSet uint64

const manyChoices = 63

func (c *choiceSet) add(index int) { *c |= 1 << min(index, manyChoices) }

// complete reports whether all choices that began said why they ended.
func (s *status) complete() bool {
	return s.begun&^s.finished == 0 && (s.finished != 0 || s.message)
}

// whole reports whether the last usage is that of the whole answer. read means that the body was read to its end.
func (s *status) whole(read, open bool) bool {
	switch {
	case s.failed || s.doubtful:
		return false
	case s.final:
		return true
	case s.stream || s.texts > 1:
		return (read && !open || s.ended) && s.complete() && s.counted
	}
	return s.texts == 1 && !open
}

var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// feed scans the next piece.
func (s *scanner) feed(p []byte) {
	for _, b := range p {
		if !s.begun && !s.begin(b) {
			continue
		}
		switch {
		case !s.events:
			s.plain(b)
		case b == '\n' && s.cr: // its line has ended already
			s.cr = false
		case b == '\n' || b == '\r':
			s.cr = b == '\r'
			s.endLine()
		default:
			s.cr = false
			s.event(b)
		}
	}
}

// begin looks at the beginning, and returns false for bytes that do not count.
func (s *scanner) begin(b byte) bool {
	if len(s.mark) < len(byteOrderMark) && b == byteOrderMark[len(s.mark)] {
		s.mark = append(s.mark, b)
		return false
	}
	switch b {
	case ' ', '\t', '\r', '\n':
		return false
	}
	s.events = b != '{' && b != '['
	s.start(s.events || s.lines)
	return true
}

// start begins to scan.
func (s *scanner) start(stream bool) {
	s.begun = true
	s.status.stream = stream
	s.json.take, s.json.status = s.take, &s.status
}

// plain takes a byte of JSON.
func (s *scanner) plain(b byte) {
	s.column++
	switch {
	case b == '\n':
		s.column = 0
		if s.json.endText(); s.lines {
			s.json.reset()
		}
		return
	case b == '{' && s.column == 1 && s.json.broken: // the next of an array, or of a line each
		s.json.restart()
	}
	s.json.byte(b)
}

const (
	dataField = "data"
	lastEvent = "[DONE]"
)

// event takes a byte of a line of server-sent events.
func (s *scanner) event(b byte) {
	if !s.inData {
		if b == ':' && string(s.field) == dataField {
			s.inData, s.first = true, true
			return
		}
		if len(s.field) <= len(dataField) {
			s.field = append(s.field, b)
		}
		return
	}
	if s.first && b == ' ' {
		s.first = false
		return
	}
	s.first = false
	if len(s.field) <= len(dataField)+len(lastEvent) {
		s.field = append(s.field, b) // the value's beginning, behind the name
	}
	if string(s.field[len(dataField):]) == `{"` && s.json.depth > 1 {
		s.json.reset() // an event begins, and the one before was not whole
		s.json.byte('{')
	}
	s.json.byte(b)
}

// endLine takes the end of a line of server-sent events.
func (s *scanner) endLine() {
	switch {
	case s.inData:
		s.json.endText()
		if value, _ := bytes.CutPrefix(s.field, []byte(dataField)); string(bytes.TrimSpace(value)) == lastEvent {
			s.json.reset()
			s.status.ended = true
		}
	case len(s.field) > 0 && s.field[0] == ':': // a comment
	default: // a blank line, or a field such as event: what comes now is another event
		s.json.reset()
	}
	s.field, s.inData = s.field[:0], false
}
