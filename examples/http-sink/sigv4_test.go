package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// awsSignatureOf works out the signature of a request as AWS describes it, by itself, from what a service has seen of it.
func awsSignatureOf(t *testing.T, r seen, host, secret, region, service string) (authorization string) {
	t.Helper()
	got := r.Header.Get("Authorization")
	_, rest, found := strings.Cut(got, "SignedHeaders=")
	require.True(t, found, got)
	names, _, _ := strings.Cut(rest, ",")
	u, err := url.ParseRequestURI(r.Path)
	require.NoError(t, err)
	var headers strings.Builder
	for name := range strings.SplitSeq(names, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = host
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	segments := strings.Split(u.EscapedPath(), "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s) // twice, but for S3
	}
	query := strings.Split(strings.ReplaceAll(u.RawQuery, "+", "%20"), "&")
	slices.Sort(query)
	canonical := strings.Join([]string{
		r.Method, strings.Join(segments, "/"), strings.Join(query, "&"), headers.String(), names, sha256Hex(r.Body),
	}, "\n")
	at := r.Header.Get("X-Amz-Date")
	scope := at[:8] + "/" + region + "/" + service + "/aws4_request"
	key := mac(mac(mac(mac([]byte("AWS4"+secret), at[:8]), region), service), "aws4_request")
	signature := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+at+"\n"+scope+"\n"+sha256Hex(canonical)))
	return "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/" + scope + ", SignedHeaders=" + names + ", Signature=" + signature
}

func TestSignatureVersion4(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, _ seen, n int) {
		if n == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	token := file(t, "token", canary+"-token\n")
	r := start(t, env{
		"URL": service.URL + "/prod/a%20b/{{.Value}}?z=1&a=x%20y", "SIGNATURE": "aws-sigv4", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
		"AWS_SECRET_KEY_FILE": file(t, "secret", canary), "AWS_SESSION_TOKEN_FILE": token, "AWS_REGION": "eu-central-1", "AWS_SERVICE": "execute-api",
		"COMPRESSION": "gzip", "COMPRESSION_MIN": "1", "HEADERS": "X-Tenant: acme", "MAX_ATTEMPTS": "3",
		"BODY": strings.Repeat("x", 1000), "CONCURRENCY": "1", "DUMP": "true",
	})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("ä/b")...)))
	require.NoError(t, os.WriteFile(token, []byte("another"), 0o600))
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("c")...)))
	requests := service.Requests()
	require.Len(t, requests, 3)
	for i, request := range requests {
		require.Equal(t, awsSignatureOf(t, request, strings.TrimPrefix(service.URL, "http://"), canary, "eu-central-1", "execute-api"),
			request.Header.Get("Authorization"))
		require.Equal(t, sha256Hex(request.Body), request.Header.Get("X-Amz-Content-Sha256"))
		for _, name := range []string{"x-amz-security-token", "x-tenant", "content-encoding", "idempotency-key", "host"} {
			require.Contains(t, request.Header.Get("Authorization"), name)
		}
		require.Equal(t, []string{canary + "-token", canary + "-token", "another"}[i], request.Header.Get("X-Amz-Security-Token"))
	}
	require.Contains(t, r.log.String(), `Authorization: (not shown)`)
	require.NotContains(t, r.log.String(), "Signature=")
}

func TestSignatureVersion4OfAGet(t *testing.T) {
	service := startService(t, nil)
	r := start(t, env{
		"URL": service.URL + "/q", "METHOD": "GET", "QUERY": "fields", "SIGNATURE": "aws-sigv4", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_KEY": canary,
		"AWS_REGION": "us-east-1", "AWS_SERVICE": "es",
	})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages(`{"b":"x y","a":"1"}`)...)))
	request := service.Requests()[0]
	require.Equal(t, awsSignatureOf(t, request, strings.TrimPrefix(service.URL, "http://"), canary, "us-east-1", "es"), request.Header.Get("Authorization"))
}

func TestSettingsOfSignatureVersion4(t *testing.T) {
	_, err := loaded(t, env{"URL": "http://h", "SIGNATURE": "aws-sigv4", "AWS_ACCESS_KEY_ID": "a", "BASIC_USERNAME": "u", "BASIC_PASSWORD": canary})
	for _, want := range []string{
		"signature: aws-sigv4 is set without awsSecretKey or awsSecretKeyFile", "signature: aws-sigv4 is set without awsRegion",
		"signature: aws-sigv4 is set without awsService", "signature: aws-sigv4 is set, and so is basicUsername, allowed: one way to log in",
	} {
		require.ErrorContains(t, withoutSources(err), want)
	}
	_, err = loaded(t, env{
		"URL": "http://h", "SIGNATURE": "none", "AWS_REGION": "r", "AWS_SECRET_KEY": canary,
		"AWS_SECRET_KEY_FILE": "/nowhere/secret", "AWS_SESSION_TOKEN": canary + "é",
	})
	for _, want := range []string{
		"awsRegion is set without signature: aws-sigv4", "awsSecretKeyFile is set, and so is awsSecretKey",
		"awsSecretKeyFile is \"/nowhere/secret\", which cannot be used",
		"awsSessionToken has a character that is not ASCII",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), canary)
}
