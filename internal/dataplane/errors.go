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
	ErrBroken = errors.New("map stream broke")
	// ErrClosed: the Map was closed before the message was sent.
	ErrClosed = errors.New("map stream closed")
)

// A Fault is a way to break the protocol.
type Fault string

// The faults that a server can commit.
const (
	// FaultUnknownID: an answer to an ID that was never sent.
	FaultUnknownID Fault = "unknown ID"
	// FaultDuplicateID: a second answer to one ID.
	FaultDuplicateID Fault = "duplicate ID"
	// FaultMissingID: the server ended the stream without answering the IDs.
	FaultMissingID Fault = "missing ID"
	// FaultHandshake: no handshake where one is due, or a second one.
	FaultHandshake Fault = "handshake"
	// FaultStatus: a transmission status, which unary map does not use.
	FaultStatus Fault = "transmission status"
)

// ProtocolError says how the server broke the protocol.
type ProtocolError struct {
	// Fault says what was wrong.
	Fault Fault
	// IDs of the answer, or of every message left without one. Empty when the
	// fault concerns no message.
	IDs []string
}

// Error names the fault and the IDs.
func (e *ProtocolError) Error() string {
	switch e.Fault {
	case FaultMissingID:
		return fmt.Sprintf("missing ID: the stream ended without an answer to %s", listIDs(e.IDs))
	case FaultUnknownID:
		return fmt.Sprintf("unknown ID: an answer to %s, which was never sent", listIDs(e.IDs))
	case FaultDuplicateID:
		return fmt.Sprintf("duplicate ID: a second answer to %s", listIDs(e.IDs))
	case FaultHandshake:
		return "handshake: the server must send exactly one, before its first answer"
	default:
		return fmt.Sprintf("%s: not allowed in the answer to %s", e.Fault, listIDs(e.IDs))
	}
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
