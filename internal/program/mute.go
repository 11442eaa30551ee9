package program

import (
	"bytes"
	"io"
	"log"
)

// MuteTransports keeps data from services out of the standard logger, net/http's only log: it prints the beginning of an unsolicited
// response. Everything else is still logged. A program calls it once, at its start.
func MuteTransports() { log.SetOutput(muted{log.Writer()}) }

// muted drops the bytes of a response.
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
