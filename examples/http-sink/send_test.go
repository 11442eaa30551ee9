package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/examples/http-sink/internal/outbound"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

func TestDifferentMessagesHaveDifferentKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, one := range []struct {
		scope   string
		ids     []string
		records [][]byte
	}{
		{"p", []string{"1"}, [][]byte{[]byte("a")}},
		{"p", []string{"1"}, [][]byte{[]byte("b")}}, // the source has begun to count anew
		{"q", []string{"1"}, [][]byte{[]byte("a")}}, // another pipeline
		{"p", []string{"1", "2"}, [][]byte{[]byte("a"), []byte("b")}},
		{"p", []string{"1", "2"}, [][]byte{[]byte("ab"), nil}},
		{"p", []string{"12"}, [][]byte{[]byte("a")}},
		{"p", []string{"\x00"}, [][]byte{nil}},
		{"p", []string{strings.Repeat("x", 300)}, [][]byte{nil}},
	} {
		id := requestID(one.scope, one.ids, one.records)
		require.Equal(t, id, requestID(one.scope, one.ids, one.records))
		require.Regexp(t, "^[!-~]{1,255}$", id)
		require.False(t, seen[id], one)
		seen[id] = true
	}
}

func TestBatches(t *testing.T) {
	for name, c := range map[string]struct {
		vars env
		in   []string
		want []string
	}{
		"single":         {nil, []string{"a", "b"}, []string{"a", "b"}},
		"array by count": {env{"FORMAT": "json-array", "MAX_MESSAGES": "2"}, []string{"1", " 2 ", "3"}, []string{"[1,2]", "[3]"}},
		"lines":          {env{"FORMAT": "ndjson"}, []string{"{\n}", "[ ]"}, []string{"{}\n[]\n"}},
		"raw by bytes":   {env{"FORMAT": "raw", "MAX_BYTES": "4"}, []string{"ab", "cd", "ef", "ghijkl", "m"}, []string{"abcd", "ef", "ghijkl", "m"}},
		"body of a message": {
			env{"BODY": `{"v":{{json .Value}},"id":{{.JSON.id}}}`},
			[]string{`{"id":12345678901234567890}`},
			[]string{`{"v":"{\"id\":12345678901234567890}","id":12345678901234567890}`},
		},
		"an object around an array": {
			env{"FORMAT": "json-array", "BODY_PREFIX": `{"events":`, "BODY_SUFFIX": `,"v":1}`}, []string{"1", "2", "3"}, []string{`{"events":[1,2,3],"v":1}`},
		},
		"lines with a head":  {env{"FORMAT": "ndjson", "BODY_PREFIX": "{}\n"}, []string{"1", "2"}, []string{"{}\n1\n2\n"}},
		"a text":             {env{"FORMAT": "raw", "BODY_PREFIX": "<", "SEPARATOR": " | ", "BODY_SUFFIX": ">"}, []string{"1", "2"}, []string{"<1 | 2>"}},
		"a separator, alone": {env{"FORMAT": "raw", "SEPARATOR": "\n"}, []string{"1", "2", "3"}, []string{"1\n2\n3"}},
		"no more than fits": {
			env{"FORMAT": "raw", "BODY_PREFIX": "<", "SEPARATOR": "--", "BODY_SUFFIX": ">", "MAX_BYTES": "6"},
			[]string{"1", "2", "3"},
			[]string{"<1--2>", "<3>"},
		},
		"each by itself": {env{"BODY_PREFIX": "<", "BODY_SUFFIX": ">"}, []string{"1", "2"}, []string{"<1>", "<2>"}},
		"another type than JSON": {
			env{"FORMAT": "json-array", "BODY_PREFIX": "data=", "CONTENT_TYPE": "application/x-www-form-urlencoded"},
			[]string{"1", "2"},
			[]string{"data=[1,2]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := startService(t, nil)
			vars := env{"URL": service.URL, "CONCURRENCY": "1"}
			maps.Copy(vars, c.vars)
			r := start(t, vars)
			require.Equal(t, all(len(c.in), dataplane.SinkSuccess), statuses(r.do(messages(c.in...)...)))
			require.Equal(t, c.want, service.Bodies())
		})
	}
}

func TestMessagesGoTogetherOnlyToTheSamePlace(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{
		"URL": service.URL + "/t/{{.Key}}?of={{index .Headers \"tenant\"}}", "FORMAT": "raw",
		"HEADERS": "X-Tenant: {{index .Headers \"tenant\"}}", "CONCURRENCY": "1",
	})
	var in []dataplane.Message
	for i, key := range []string{"a", "b/../c", "a", "a"} {
		in = append(in, dataplane.Message{
			Keys: []string{key}, Value: []byte(fmt.Sprint(i)),
			Headers: map[string]string{"tenant": map[bool]string{true: "t&x", false: "u"}[i < 3], "Traceparent": "00-" + fmt.Sprint(i/3)},
		})
	}
	in[1].Keys = []string{"b?c#d"}
	require.Equal(t, all(4, dataplane.SinkSuccess), statuses(r.do(in...)))
	var got []string
	for _, request := range service.Requests() {
		got = append(got, request.Path+" "+request.Header.Get("X-Tenant")+" "+request.Header.Get("Traceparent")+" "+request.Body)
	}
	require.ElementsMatch(t, []string{"/t/a?of=t%26x t&x 00-0 02", "/t/b%3Fc%23d?of=t%26x t&x 00-0 1", "/t/a?of=u u 00-1 3"}, got)
}

func TestCompression(t *testing.T) {
	for coding, decode := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		t.Run(coding, func(t *testing.T) {
			service := startService(t, nil)
			r := start(t, env{"URL": service.URL, "COMPRESSION": coding, "CONCURRENCY": "1", "NUMATHROTTLE_MAX": "1000000", "UNIT": "bytes"})
			long := strings.Repeat("compressible ", 1000)
			require.Equal(t, all(2, dataplane.SinkSuccess), statuses(r.do(messages(long, "short")...)))
			requests := service.Requests()
			require.Equal(t, coding, requests[0].Header.Get("Content-Encoding"))
			require.Less(t, len(requests[0].Body), 1000)
			reader, err := decode(strings.NewReader(requests[0].Body))
			require.NoError(t, err)
			body, err := io.ReadAll(reader)
			require.NoError(t, err)
			require.Equal(t, long, string(body))
			require.Empty(t, requests[1].Header.Get("Content-Encoding"))
			require.Equal(t, "short", requests[1].Body)
			require.EqualValues(t, len(requests[0].Body)+len("short"), r.limits.rates[0].Status().Granted, "bytes are counted as they are sent")
		})
	}
}

func TestAnAnswerWithoutEndIsReadOnlyToItsBound(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, _ seen, _ int) {
		for {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	})
	r := start(t, env{"URL": service.URL, "TIMEOUT": "1h", "MAX_RESPONSE": "1000", "ON_OK": "on-success"})
	results := r.do(messages("x")...)
	require.Len(t, results[0].OnSuccess.Value, 1000)
	require.Contains(t, r.log.String(), "an answer is longer than maxResponse")
}

func TestAServiceCannotSayWhatTheClientSaysToItself(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, r seen, _ int) {
		for _, name := range []string{outbound.NotSent, outbound.NoRetry, outbound.Renewed} {
			w.Header().Set(name, "1")
		}
		if r.Body == "fail" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	r := start(t, env{"URL": service.URL, "MAX_ATTEMPTS": "3", "CONCURRENCY": "1", "BEARER_TOKEN": canary})
	require.Equal(t, []dataplane.SinkStatus{dataplane.SinkSuccess, dataplane.SinkFailure}, statuses(r.do(messages("ok", "fail")...)))
	require.Equal(t, []string{"ok", "fail"}, service.Bodies())
}

func TestErrorsHoldNoURL(t *testing.T) {
	r := start(t, env{"URL": "http://127.0.0.1:1/path"})
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	_, err := r.handler.client.do(ctx, &call{url: "http://127.0.0.1:1/" + canary, header: http.Header{}, cost: 1})
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), canary)
}

func TestAConnectionThatBreaksOffIsTriedAgain(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, _ seen, n int) {
		if n == 1 {
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		}
	})
	r := start(t, env{"URL": service.URL, "MAX_ATTEMPTS": "2"})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("body")...)))
	require.Equal(t, []string{"body", "body"}, service.Bodies())
}

func TestLayoutsThatAreRefused(t *testing.T) {
	_, err := loaded(t, env{"URL": "http://h", "FORMAT": "json-array", "BODY_PREFIX": `{"events":`, "SEPARATOR": ","})
	require.ErrorContains(t, err, "separator is set without format: raw")
	require.ErrorContains(t, withoutSources(err), `bodyPrefix and bodySuffix are "{\"events\":" and "", which make no JSON around an array, allowed: such as`)
}
