package account_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
)

// What streams cost that end in any way.
func TestWhatStreamsCost(t *testing.T) {
	const (
		chunk = `data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}` + "\n\n"
		stop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		known = `data: {"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":4,"total_tokens":34}}` + "\n\n"
		done  = "data: [DONE]\n\n"
		fault = `data: {"error":{"code":429,"message":"too many"}}` + "\n\n"
		huge  = `data: {"choices":[],"usage":{"prompt_tokens":300,"completion_tokens":4,"total_tokens":304}}` + "\n\n"
	)
	drawn := map[string]int{"/input": 50, "/output": 100, "/tokens": 150}
	settled := map[string]int{"/input": 30, "/output": 4, "/tokens": 34}
	for name, tc := range map[string]struct {
		stream string
		err    error
		parts  int // reads of the caller before it closes; 0: all
		want   map[string]int
	}{
		"whole":                          {chunk + stop + known + done, nil, 0, settled},
		"closed after its end":           {chunk + stop + known + done, nil, 4, settled},
		"closed early":                   {chunk + stop + known + done, nil, 1, drawn},
		"broken":                         {chunk, errors.New("reset"), 0, drawn},
		"broken after its usage":         {chunk + known, errors.New("reset"), 0, drawn},
		"without a usage":                {chunk + stop + done, nil, 0, drawn},
		"an error after the first words": {chunk + fault + known + done, nil, 0, drawn},
		"broken, and it was more":        {chunk + huge, errors.New("reset"), 0, map[string]int{"/input": 300, "/output": 100, "/tokens": 304}},
	} {
		virtually(t, name, func(t *testing.T) {
			l := open(t, every(profile.SelfHosted))
			tr := l.Transport(service(func(*http.Request, string) (*http.Response, error) {
				res := answers(200, "")
				res.Header.Set("Content-Type", "text/event-stream")
				var events []io.Reader
				for e := range strings.SplitAfterSeq(tc.stream, "\n\n") {
					events = append(events, strings.NewReader(e))
				}
				if tc.err != nil {
					events = append(events, failing{tc.err})
				}
				res.Body, res.ContentLength = io.NopCloser(io.MultiReader(events...)), -1
				return res, nil
			}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://llm/v1/chat/completions", strings.NewReader(chat(200, 100)))
			require.NoError(t, err)
			res, err := tr.RoundTrip(req)
			require.NoError(t, err)
			buffer := make([]byte, 1024)
			for n := 0; err == nil && (tc.parts == 0 || n < tc.parts); n++ {
				_, err = res.Body.Read(buffer)
			}
			require.NoError(t, res.Body.Close())
			got := l.settled(t)
			for pool, n := range tc.want {
				require.Equal(t, n, got[pool], pool)
			}
		})
	}
}
