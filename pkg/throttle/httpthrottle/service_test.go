package httpthrottle_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// fine answers everything with 200.
var fine = baseFunc(func(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
})

// request makes a request; a body that is not empty has GetBody.
func request(t *testing.T, method, body string) *http.Request {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = bytes.NewBufferString(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://service.test/v1/chat?key=sesame", reader)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer sesame")
	return req
}

// read returns the body of a response, and closes it.
func read(t *testing.T, res *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return string(data)
}

// within asserts that d is at least least, and at most most.
func within(t *testing.T, least, most, d time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, d, least)
	require.LessOrEqual(t, d, most)
}
