package httpthrottle

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// peekSize is how much of the body of an error is read to classify it.
const peekSize = 1 << 20

// answerOf returns what a Classifier sees of a response, whose body still has all that
// it had.
func answerOf(res *http.Response) Answer {
	a := Answer{Status: res.StatusCode, Header: res.Header, At: time.Now()}
	body := res.Body
	if a.Status < http.StatusBadRequest || body == nil || body == http.NoBody {
		return a
	}
	var err error
	var rest io.Reader = body
	if a.Body, err = io.ReadAll(io.LimitReader(body, peekSize)); err != nil {
		rest = failingReader{err}
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(a.Body), rest), body}
	return a
}

// A failingReader fails as the body did when it was read before.
type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
