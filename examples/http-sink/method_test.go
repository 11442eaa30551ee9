package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

func TestGet(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, r seen, _ int) { _, _ = w.Write([]byte("looked up " + r.Path)) })
	r := start(t, env{"URL": service.URL + "/items/{{.JSON.id}}?v=1", "METHOD": "GET", "ON_OK": "on-success"})
	results := r.do(messages(`{"id":"a/b"}`, `{"id":7}`)...)
	require.Equal(t, all(2, dataplane.SinkOnSuccess), statuses(results))
	require.Equal(t, "looked up /items/a%2Fb?v=1", string(results[0].OnSuccess.Value))
	require.Len(t, service.Requests(), 2)
	for _, request := range service.Requests() {
		require.Equal(t, http.MethodGet, request.Method)
		require.Empty(t, request.Body)
		for _, name := range []string{"Content-Type", "Content-Length", "Transfer-Encoding", "Idempotency-Key"} {
			require.Empty(t, request.Header.Values(name), name)
		}
	}
}

func TestFieldsBecomeParameters(t *testing.T) {
	service := startService(t, nil)
	for _, base := range []string{"/q", "/q?own=1"} {
		r := start(t, env{"URL": service.URL + base, "METHOD": "GET", "QUERY": "fields", "CONCURRENCY": "1"})
		require.Equal(t, all(3, dataplane.SinkSuccess), statuses(r.do(messages(
			`{"b":"x&y=z #","n":12345678901234567890,"yes":true,"no":null,"list":[1,"two"],"ä":""}`, `{}`, `{"no":null}`)...)))
		separator := "?"
		if base != "/q" {
			separator = "&"
		}
		requests := service.Requests()[len(service.Requests())-3:]
		require.Equal(t, base+separator+"b=x%26y%3Dz+%23&list=1&list=two&n=12345678901234567890&yes=true&%C3%A4=", requests[0].Path)
		require.Equal(t, base, requests[1].Path)
		require.Equal(t, base, requests[2].Path)
	}
}

// What a message has cannot take the place of what the operator has set.
func TestMessagesThatMakeNoParameters(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{"URL": service.URL + "/q?own=1", "METHOD": "GET", "QUERY": "fields"})
	for message, want := range map[string]string{
		`{"own":"2"}`:        "a field of the message has the name of a parameter that url sets",
		`[1]`:                "the message is no JSON object",
		`plain`:              "the message is not one JSON text",
		`{"a":{"b":1}}`:      "a field cannot be a parameter: a value is a map[string]interface {}, allowed: a text",
		`{"a":[1,[2],null]}`: "a field cannot be a parameter",
	} {
		result := r.do(messages(message)...)[0]
		require.Equal(t, dataplane.SinkFailure, result.Status)
		require.Contains(t, result.Error, want)
	}
	require.Empty(t, service.Requests())
}

func TestWhatAGetCannotHave(t *testing.T) {
	_, err := loaded(t, env{
		"URL": "http://h", "METHOD": "GET", "BODY": "x", "BODY_PREFIX": "x", "BODY_SUFFIX": "x", "CONTENT_TYPE": "text/plain", "COMPRESSION": "gzip",
		"FORMAT": "raw", "SIGNATURE": "sha256", "SIGNATURE_KEY": canary, "UNIT": "bytes",
	})
	for _, key := range []string{"body", "bodyPrefix", "bodySuffix", "contentType", "compression", "format", "signature", "unit"} {
		require.ErrorContains(t, withoutSources(err), key+" is set, but the method is GET, which sends nothing, allowed: with another method")
	}
	_, err = loaded(t, env{"URL": "http://h", "METHOD": "POST", "QUERY": "fields"})
	require.ErrorContains(t, err, "query is set without method: GET")
}

// nginx, too, gets what was meant.
func TestGetAtNginx(t *testing.T) {
	url, answers := nginx(t)
	r := start(t, env{"URL": url, "METHOD": "GET", "QUERY": "fields", "NUMATHROTTLE_MAX": "36", "NUMATHROTTLE_BURST": "1"})
	require.Equal(t, all(3, dataplane.SinkSuccess), statuses(r.do(messages(`{"a":1}`, `{"a":2}`, `{"a":"ä ö"}`)...)))
	require.Eventually(t, func() bool { return answers()["204"] == 3 }, testTimeout, 1e6)
}
