package program

import (
	"bytes"
	"io"
	"log"
)

// MuteTransports keeps what services send out of the standard logger, where net/http has nothing else to log to: it prints the
// beginning of an answer that comes unasked. Everything else is logged as before. A program calls it once, at its start.
func MuteTransports() { log.SetOutput(muted{log.Writer()}) }

// muted leaves out the bytes of an answer.
type muted struct{ io.Writer }

var unsolicited = []byte("Unsolicited response received on idle HTTP channel")

// Write implements io.Writer.
func (m muted) Write(p []byte) (int, error) {
	i := bytes.Index(p, unsolicited)
	if i < 0 {
		return m.Writer.Write(p)
	}
	line := append(bytes.Clone(p[:i+len(unsolicited)]), " (not shown)\n"...)
	if _, err := m.Writer.Write(line); err != nil {
		return 0, err
	}
	return len(p), nil
}
