package account_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A service answers requests in memory, so that calls run in virtual time.
type service func(req *http.Request, body string) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (s service) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	return s(req, string(body))
}

// answers returns an answer of JSON.
func answers(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

// always answers each request alike.
func always(status int, body string) service {
	return func(*http.Request, string) (*http.Response, error) { return answers(status, body), nil }
}

// call makes a call in memory, and returns its status.
func call(t testing.TB, tr http.RoundTripper, body string) int {
	t.Helper()
	return callAt(t, tr, "http://llm/v1/messages", body)
}

func callAt(t testing.TB, tr http.RoundTripper, url, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	res, err := tr.RoundTrip(req)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}

// virtually runs a test in virtual time.
func virtually(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// scripted answers in memory, with a header or none.
func scripted(f func(*http.Request) (status int, header, body string)) service {
	return func(r *http.Request, _ string) (*http.Response, error) {
		status, header, body := f(r)
		res := answers(status, body)
		if name, value, ok := strings.Cut(header, ": "); ok {
			res.Header.Set(name, value)
		}
		return res, nil
	}
}
