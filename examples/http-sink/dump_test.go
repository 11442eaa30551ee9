package main

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// dumps returns the lines of a log that are dumps of requests.
func dumps(r *rig) []string {
	var out []string
	for s := bufio.NewScanner(strings.NewReader(r.log.String())); s.Scan(); {
		if strings.Contains(s.Text(), `msg="dump of a request"`) {
			out = append(out, s.Text())
		}
	}
	return out
}

func TestDump(t *testing.T) {
	const inURL = "secret-of-a-setting" // which --check shows
	service := startService(t, nil)
	r := start(t, env{
		"URL": service.URL + "/hook/{{.Value}}?page=1&access_token=" + inURL + "&sig=" + inURL, "DUMP": "true", "DUMP_BYTES": "30",
		"BODY": "{{.Value}} and what follows is cut off here", "HEADERS": "X-Tenant: acme\nX-Session-Id: " + inURL + "\nX-Other-Token: " + inURL,
		"BEARER_TOKEN": canary, "API_KEY": canary + "-key", "API_KEY_HEADER": "X-Plain", "COMPRESSION": "gzip", "COMPRESSION_MIN": "1",
		"SIGNATURE": "sha256", "SIGNATURE_KEY": canary + "-signature", "SIGNATURE_HEADER": "X-Check",
	})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
	lines := dumps(r)
	require.Len(t, lines, 1)
	request := service.Requests()[0]
	for _, want := range []string{
		"method=POST", service.URL + "/hook/a?page=1&access_token=(not shown)&sig=(not shown)", "X-Tenant: acme", "X-Session-Id: (not shown)",
		"X-Other-Token: (not shown)", "Authorization: (not shown)", "X-Plain: (not shown)", "X-Check: (not shown)",
		"Idempotency-Key: " + request.Header.Get("Idempotency-Key"), `body="a and what follows is cut off "`, "bytes=34", "leftOut=0",
	} {
		require.Contains(t, lines[0], want)
	}
	require.Equal(t, "Bearer "+canary, request.Header.Get("Authorization"), "what is sent is whole")
	require.Equal(t, inURL, request.Header.Get("X-Session-Id"))
	require.Contains(t, request.Path, "access_token="+inURL)
	require.NotContains(t, r.log.String(), inURL)
}

// Secrets are taken out wherever a message or a template has put them, also where a body is cut.
func TestADumpHidesSecretsAnywhere(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{
		"URL": service.URL + "/{{.Value}}", "DUMP": "true", "DUMP_BYTES": "10", "BODY": "12345{{.Value}}", "BEARER_TOKEN": canary, "HEADERS": "X-A: {{.Value}}",
	})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages(canary)...)))
	require.Contains(t, dumps(r)[0], `body="12345(not " bytes=19`)
	require.NotContains(t, r.log.String(), canary[:4])
}

// A URL that is a secret itself is not shown behind its host.
func TestADumpOfASecretURL(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{"URL_FILE": file(t, "url", service.URL+"/services/"+canary+"?x="+canary), "DUMP": "true"})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
	require.Contains(t, dumps(r)[0], `url="`+service.URL+`/(not shown)"`)
}

// However many requests there are, the log is bounded, and tells of those that it leaves out. Each attempt is a request.
func TestDumpsAreBounded(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, _ seen, n int) {
		if n == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	r := start(t, env{"URL": service.URL, "DUMP": "true", "MAX_ATTEMPTS": "2", "CONCURRENCY": "1"})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(numbered(1)...)))
	require.Len(t, dumps(r), 2)
	require.Equal(t, all(500, dataplane.SinkSuccess), statuses(r.do(numbered(500)...)))
	require.Less(t, len(dumps(r)), 250)
	require.Eventually(t, func() bool {
		r.do(numbered(1)...)
		lines := dumps(r)
		return strings.Count(strings.Join(lines, " "), "leftOut=0") < len(lines)
	}, testTimeout, 1e7, "a later line says how many are missing")
}

func TestNoDumpWithoutTheSetting(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{"URL": service.URL})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
	require.Empty(t, dumps(r))
	_, err := loaded(t, env{"URL": "http://h", "DUMP_BYTES": "5"})
	require.ErrorContains(t, err, "dumpBytes is set without dump: true")
}
