package consensus

import (
	"errors"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/ramp"
)

// rampDocument is the name of the document that says where the pool's ramp stands.
const rampDocument = "ramp"

// A rampState is that document: where the ramp stands, and in which life of the pool
// that was.
type rampState struct {
	state ramp.State
	began int64 // Answer.Began; 0: not known
}

// rampForm is the first word of every body that this release writes and reads.
const rampForm = "1"

// body returns the document's body. It fails for a state that no step returns.
func (r rampState) body() ([]byte, error) {
	b := strconv.AppendInt([]byte(rampForm+" "), r.began, 10)
	return r.state.AppendText(append(b, ' '))
}

// parseRampState reads what body returns, and nothing else.
func parseRampState(body []byte) (rampState, error) {
	form, rest, _ := strings.Cut(string(body), " ")
	began, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(began, 10, 64)
	if form != rampForm || err != nil || n < 0 || n > MaxMicros || strconv.FormatInt(n, 10) != began {
		return rampState{}, errors.New("consensus: the document " + rampDocument + " is none of this release's")
	}
	s, err := ramp.ParseState(rest)
	return rampState{s, n}, err
}
