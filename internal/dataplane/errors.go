package dataplane

import (
	"errors"
	"fmt"
	"strings"
)

// Errors to compare with errors.Is.
var (
	// ErrBroken: the stream broke before the message was answered. The cause
	// follows in the chain: a *ProtocolError, or the server's gRPC status.
	ErrBroken = errors.New("stream broke")
	// ErrClosed: the stream was closed before the message was sent.
	ErrClosed = errors.New("stream closed")
	// ErrNotSent: the server has seen nothing of the message. The cause follows in the chain: ErrBroken, ErrClosed or the cause of the
	// context.
	ErrNotSent = errors.New("message not sent")
)

// A Fault is a way to break the protocol.
type Fault string

// The faults that a server can commit.
const (
	// FaultUnknownID: an answer to an ID that was never sent.
	FaultUnknownID Fault = "unknown ID"
	// FaultDuplicateID: a second answer to one ID; of a source, an offset that is
	// delivered again while it is neither acknowledged nor refused.
	FaultDuplicateID Fault = "duplicate ID"
	// FaultMissingID: the server ended the stream, or a batch, without answering the
	// IDs.
	FaultMissingID Fault = "missing ID"
	// FaultMissingEOT: the server ended the stream without the end-of-transmission
	// mark that was due for the IDs.
	FaultMissingEOT Fault = "missing EOT"
	// FaultUnexpectedEOT: an end-of-transmission mark where nothing is to be ended.
	FaultUnexpectedEOT Fault = "unexpected EOT"
	// FaultAfterEOT: a result for an ID that was ended.
	FaultAfterEOT Fault = "result after EOT"
	// FaultHandshake: no handshake where one is due, or a second one.
	FaultHandshake Fault = "handshake"
	// FaultStatus: a transmission status that the kind of stream does not use, or
	// results together with an end-of-transmission mark.
	FaultStatus Fault = "transmission status"
	// FaultEmpty: an empty answer of a transformer, or a response that says nothing.
	FaultEmpty Fault = "empty result"
	// FaultEventTime: a result without the event time that it must have.
	FaultEventTime Fault = "no event time"
	// FaultOffset: a message of a source without an offset.
	FaultOffset Fault = "no offset"
	// FaultTooMany: more messages than a read has asked for.
	FaultTooMany Fault = "too many"
	// FaultUnasked: the answer to an acknowledgement that was not sent.
	FaultUnasked Fault = "unasked answer"
)

// texts say what a fault is, with the IDs in place of %s.
var texts = map[Fault]string{
	FaultUnknownID:     "unknown ID: an answer to %s, which was never sent",
	FaultDuplicateID:   "duplicate ID: a second answer to %s",
	FaultMissingID:     "missing ID: ended without an answer to %s",
	FaultMissingEOT:    "missing EOT: the stream ended before the end of transmission for %s",
	FaultUnexpectedEOT: "unexpected EOT: an end of transmission where nothing is to be ended",
	FaultAfterEOT:      "result after EOT: %s was ended before",
	FaultHandshake:     "handshake: the server must send exactly one, before its first answer",
	FaultStatus:        "transmission status: not allowed in the answer to %s",
	FaultEmpty:         "empty result: nothing in the answer to %s",
	FaultEventTime:     "no event time: in a result for %s",
	FaultOffset:        "no offset: of a message in read %s",
	FaultTooMany:       "too many: more messages than were asked for, first %s",
	FaultUnasked:       "unasked answer: to an acknowledgement that was not sent",
}

// ProtocolError says how the server broke the protocol.
type ProtocolError struct {
	// Fault is the kind of fault.
	Fault Fault
	// IDs of the answer, or of every message left without one. Empty when the
	// fault concerns no message.
	IDs []string
}

// Error names the fault and the IDs.
func (e *ProtocolError) Error() string {
	text, ok := texts[e.Fault]
	if !ok {
		text = string(e.Fault) + ": %s"
	}
	if !strings.Contains(text, "%s") {
		return text
	}
	return fmt.Sprintf(text, listIDs(e.IDs))
}

// namedIDs bounds an error's length: 500 IDs in one line help nobody.
const namedIDs = 8

func listIDs(ids []string) string {
	var b strings.Builder
	for i, id := range ids {
		if i == namedIDs {
			fmt.Fprintf(&b, " and %d more", len(ids)-namedIDs)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", id)
	}
	return b.String()
}
