package usage

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

// An eventStream reads the binary event stream of Amazon Bedrock, in pieces of any size. It keeps no more than one message. It hands the JSON
// of each event to a scanner: the payload (ConverseStream), or the chunk in it (InvokeModelWithResponseStream).
//
// A message is a prelude with the length of all and of the headers, a checksum of the prelude, headers, a payload, and a checksum of all.
type eventStream struct {
	scan    *scanner
	message []byte // as far as it has come
	skip    int    // bytes left of one that is too long, and makes the answer doubtful
	lost    bool   // where a message begins is not known any more
}

const (
	preludeLength   = 12 // with its checksum
	checksumLength  = 4
	shortestMessage = preludeLength + checksumLength
	longestMessage  = 256 << 10 // of those that are kept
	mostMessage     = 64 << 20  // of those that are valid
)

// beginsMessage reports whether a message can begin with a byte. JSON and server-sent events can't.
func beginsMessage(b byte) bool { return b <= mostMessage>>24 }

// newEventStream returns a stream that is read into a scanner.
func newEventStream(s *scanner) *eventStream {
	s.start(true)
	return &eventStream{scan: s}
}

// open reports whether a message is under way, and kept.
func (e *eventStream) open() bool { return len(e.message) > 0 }

// feed reads the next piece. A message that is too long is passed over, like an event that is broken.
func (e *eventStream) feed(p []byte) {
	for len(p) > 0 && !e.lost {
		if e.skip > 0 {
			n := min(e.skip, len(p))
			e.skip, p = e.skip-n, p[n:]
			continue
		}
		length := preludeLength
		if len(e.message) >= preludeLength {
			length = int(binary.BigEndian.Uint32(e.message))
		}
		n := min(length-len(e.message), len(p))
		e.message, p = append(e.message, p[:n]...), p[n:]
		switch {
		case len(e.message) < length:
		case length == preludeLength:
			e.prelude()
		default:
			e.take()
			e.message = e.message[:0]
		}
	}
}

// prelude takes the beginning of a message.
func (e *eventStream) prelude() {
	length, headers := binary.BigEndian.Uint32(e.message), binary.BigEndian.Uint32(e.message[4:])
	switch {
	case !checked(e.message), length < shortestMessage, length > mostMessage, headers > length-shortestMessage:
		e.lost, e.scan.status.failed = true, true
	case length > longestMessage:
		e.skip = int(length) - preludeLength
		e.message = e.message[:0]
		e.scan.status.doubtful = true
	}
}

// checked reports whether data ends with its checksum.
func checked(data []byte) bool {
	end := len(data) - checksumLength
	return crc32.ChecksumIEEE(data[:end]) == binary.BigEndian.Uint32(data[end:])
}

// take takes a message. An exception, or one that was changed on its way, makes the answer one that failed.
func (e *eventStream) take() {
	headers := preludeLength + int(binary.BigEndian.Uint32(e.message[4:]))
	payload := e.message[headers : len(e.message)-checksumLength]
	kind, event := eventHeaders(e.message[preludeLength:headers])
	if !checked(e.message) || kind != "event" {
		e.scan.status.failed = true
		return
	}
	if event == "chunk" {
		var chunk struct {
			Bytes []byte `json:"bytes"`
		}
		if json.Unmarshal(payload, &chunk) != nil {
			e.scan.status.doubtful = true
			return
		}
		payload = chunk.Bytes
	}
	for _, b := range payload {
		e.scan.json.byte(b)
	}
	e.scan.json.reset()
	if event == "metadata" { // the last of ConverseStream
		e.scan.status.ended = true
	}
}

// sizes are how long the values of headers are, by type; 0 for one that tells its length first.
var sizes = [...]int{-1, -1, 1, 2, 4, 8, 0, 0, 8, 16}

// eventHeaders returns the headers :message-type and :event-type; "" for one that is missing, or that can't be read.
func eventHeaders(h []byte) (kind, event string) {
	for len(h) > 0 {
		n := int(h[0])
		if len(h) < n+2 {
			return "", ""
		}
		name, of := string(h[1:1+n]), int(h[1+n])
		h = h[n+2:]
		if of >= len(sizes) {
			return "", ""
		}
		size := max(sizes[of], 0)
		if sizes[of] == 0 {
			if len(h) < 2 {
				return "", ""
			}
			size, h = int(binary.BigEndian.Uint16(h)), h[2:]
		}
		if len(h) < size {
			return "", ""
		}
		switch value := string(h[:size]); name {
		case ":message-type":
			kind = value
		case ":event-type":
			event = value
		}
		h = h[size:]
	}
	return kind, event
}
