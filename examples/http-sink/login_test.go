package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

func TestLogins(t *testing.T) {
	for name, c := range map[string]struct {
		vars   func(t *testing.T) env
		header string
		want   string
	}{
		"basic": {
			func(*testing.T) env { return env{"BASIC_USERNAME": "u", "BASIC_PASSWORD": canary} },
			"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+canary)),
		},
		"bearer": {
			func(t *testing.T) env { return env{"BEARER_TOKEN_FILE": file(t, "token", canary+"\n")} },
			"Authorization", "Bearer " + canary,
		},
		"key":            {func(*testing.T) env { return env{"API_KEY": canary} }, "X-Api-Key", canary},
		"key by name":    {func(*testing.T) env { return env{"API_KEY": canary, "API_KEY_HEADER": "X-Other"} }, "X-Other", canary},
		"key and bearer": {func(*testing.T) env { return env{"API_KEY": canary, "BEARER_TOKEN": canary} }, "Authorization", "Bearer " + canary},
	} {
		t.Run(name, func(t *testing.T) {
			service := startService(t, nil)
			vars := c.vars(t)
			vars["URL"] = service.URL
			r := start(t, vars)
			require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
			require.Equal(t, c.want, service.Requests()[0].Header.Get(c.header))
		})
	}
}

func TestATokenInAFileIsReadAnew(t *testing.T) {
	service := startService(t, nil)
	path := file(t, "token", "one")
	r := start(t, env{"URL": service.URL, "BEARER_TOKEN_FILE": path})
	r.do(messages("a")...)
	require.NoError(t, os.WriteFile(path, []byte("two"), 0o600))
	r.do(messages("b")...)
	require.NoError(t, os.Remove(path))
	r.do(messages("c", "d")...)
	requests := service.Requests()
	require.Len(t, requests, 4)
	for _, req := range requests[1:] {
		require.Equal(t, "Bearer two", req.Header.Get("Authorization"), "what the file held last")
	}
}

func TestOAuth2(t *testing.T) {
	tokens := startService(t, func(w http.ResponseWriter, r seen, n int) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(r.Body, "audience=them") || !strings.Contains(r.Body, "scope=a+b") {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, `{"access_token":"%s-%d","token_type":"bearer","expires_in":3600}`, canary, n)
	})
	refused := map[string]bool{}
	service := startService(t, func(w http.ResponseWriter, r seen, _ int) {
		if refused[r.Header.Get("Authorization")] {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	vars := env{
		"URL": service.URL, "OAUTH_TOKEN_URL": tokens.URL + "/token", "OAUTH_CLIENT_ID": "id", "OAUTH_SECRET": canary,
		"OAUTH_SCOPES": "a b", "OAUTH_AUDIENCE": "them",
		"MAX_ATTEMPTS": "3", "CONCURRENCY": "1",
	}
	token := func(n int) string { return fmt.Sprintf("Bearer %s-%d", canary, n) }
	last := func() string {
		requests := service.Requests()
		return requests[len(requests)-1].Header.Get("Authorization")
	}

	r := start(t, vars)
	require.Equal(t, all(3, dataplane.SinkSuccess), statuses(r.do(numbered(3)...)))
	require.Len(t, tokens.Requests(), 1, "one token for all")
	user, password, _ := (&http.Request{Header: tokens.Requests()[0].Header}).BasicAuth()
	require.Equal(t, "id/"+canary, user+"/"+password)
	require.Equal(t, token(1), last())

	refused[token(1)] = true
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("x")...)), "a token that is refused is replaced, and the request sent again")
	require.Equal(t, token(2), last())
	refused[token(2)] = true
	require.Equal(t, "status 401", r.do(messages("x")...)[0].Error, "not over and over")
	require.Len(t, tokens.Requests(), 2)
}

func oauth(service, tokens string) env {
	return env{"URL": service, "OAUTH_TOKEN_URL": tokens, "OAUTH_CLIENT_ID": "id", "OAUTH_SECRET": canary}
}

// A secret that is wrong is shown in both ways that there are, and not again with each message.
func TestATokenEndpointThatRefuses(t *testing.T) {
	tokens := startService(t, func(w http.ResponseWriter, _ seen, _ int) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_client","error_description":"` + canary + `"}`))
	})
	service := startService(t, nil)
	vars := oauth(service.URL, tokens.URL)
	vars["NUMATHROTTLE_MAX"], vars["NUMATHROTTLE_STORE"] = "1000", "static://?replicas=1"
	r := start(t, vars)
	for range 3 {
		for _, result := range r.do(numbered(50)...) {
			require.Equal(t, "no token: the token endpoint answered with status 400 (invalid_client)", result.Error)
		}
	}
	require.Len(t, tokens.Requests(), 2, "with a header, and in the body")
	require.Empty(t, service.Requests())
	require.Equal(t, 1, strings.Count(r.log.String(), "messages wait for a token"))
	require.Zero(t, r.limits.rates[0].Status().Granted, "what cannot log in draws nothing")
}

// What the endpoint says of when to come back is heeded, and handed on with a message that is given back.
func TestATokenEndpointThatIsBusy(t *testing.T) {
	for name, header := range map[string]string{"seconds": "60", "date": time.Now().Add(61 * time.Second).UTC().Format(http.TimeFormat)} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				tokens := startService(t, func(w http.ResponseWriter, _ seen, _ int) {
					w.Header().Set("Retry-After", header)
					w.WriteHeader(status)
				})
				service := startService(t, nil)
				vars := oauth(service.URL, tokens.URL)
				vars["ON_UNAVAILABLE"], vars["MAX_ATTEMPTS"] = "nack", "4"
				r := start(t, vars)
				for range 5 {
					for _, result := range r.do(numbered(20)...) {
						require.Equal(t, dataplane.SinkNack, result.Status)
						require.Equal(t, fmt.Sprintf("no token: the token endpoint answered with status %d", status), result.NackOptions.Reason)
						require.Greater(t, result.NackOptions.Delay, 40*time.Second)
					}
				}
				require.Len(t, tokens.Requests(), 1)
				require.Empty(t, service.Requests())
			})
		}
	}
}

// A message waits for a token that comes within its patience, whatever form it comes in.
func TestATokenThatComesLate(t *testing.T) {
	for name, answer := range map[string][2]string{
		"text":  {"text/plain", `{"access_token":"` + canary + `","token_type":"bearer","expires_in":3600.0}`},
		"query": {"application/x-www-form-urlencoded", "access_token=" + canary + "&token_type=bearer"},
	} {
		t.Run(name, func(t *testing.T) {
			tokens := startService(t, func(w http.ResponseWriter, _ seen, n int) {
				if n == 1 {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				w.Header().Set("Content-Type", answer[0])
				_, _ = w.Write([]byte(answer[1]))
			})
			service := startService(t, nil)
			r := start(t, oauth(service.URL, tokens.URL))
			require.Equal(t, all(20, dataplane.SinkSuccess), statuses(r.do(numbered(20)...)))
			require.Len(t, tokens.Requests(), 2)
			require.Equal(t, "Bearer "+canary, service.Requests()[0].Header.Get("Authorization"))
		})
	}
}

// The client may have to show its secret in the body.
func TestATokenEndpointThatReadsTheBodyOnly(t *testing.T) {
	tokens := startService(t, func(w http.ResponseWriter, r seen, _ int) {
		if !strings.Contains(r.Body, "client_secret="+canary) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"access_token":"` + canary + `","expires_in":0.05}`))
	})
	service := startService(t, nil)
	r := start(t, oauth(service.URL, tokens.URL))
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
	time.Sleep(60 * time.Millisecond) // the life of the token
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("b")...)))
	asked := tokens.Requests() // three, or more where the machine is slow: the token may end on its way
	require.GreaterOrEqual(t, len(asked), 3)
	for i, request := range asked {
		require.Equal(t, i == 0, request.Header.Get("Authorization") != "", "the way that worked is kept")
	}
}

func TestSignatures(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, _ seen, n int) {
		if n%2 == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	sum := func(key, text string) []byte {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	long := strings.Repeat("long ", 1000)
	r := start(t, env{"URL": service.URL, "SIGNATURE": "sha256", "SIGNATURE_KEY": canary, "MAX_ATTEMPTS": "2", "COMPRESSION": "gzip"})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages(long)...)))
	for _, request := range service.Requests() {
		require.Equal(t, "sha256="+hex.EncodeToString(sum(canary, request.Body)), request.Header.Get("X-Signature-256"))
	}
	r = start(t, env{
		"URL": service.URL, "SIGNATURE": "standard-webhooks",
		"SIGNATURE_KEY": "whsec_" + base64.StdEncoding.EncodeToString([]byte(canary)), "MAX_ATTEMPTS": "2",
	})
	results := r.do(messages("a")...)
	require.Len(t, service.Requests(), 4)
	for _, request := range service.Requests()[2:] {
		id := request.Header.Get("Idempotency-Key")
		require.Equal(t, id, request.Header.Get("Webhook-Id"))
		require.Contains(t, id, results[0].ID)
		signed := id + "." + request.Header.Get("Webhook-Timestamp") + ".a"
		require.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(sum(canary, signed)), request.Header.Get("Webhook-Signature"))
	}
}

// writePair puts a new certificate of an authority and its key into files.
func writePair(t *testing.T, ca *testenv.Authority, name, certFile, keyFile string) {
	t.Helper()
	cert, key := ca.Issue(t, name)
	require.NoError(t, os.WriteFile(certFile, []byte(cert), 0o600))
	require.NoError(t, os.WriteFile(keyFile, []byte(key), 0o600))
}

func TestTheClientsCertificateIsReadAnew(t *testing.T) {
	ca := testenv.NewAuthority(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	service := testkit.NewService(nil)
	names := make(chan string, 10)
	inner := service.Config.Handler
	service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names <- r.TLS.PeerCertificates[0].Subject.CommonName + " " + r.Proto
		inner.ServeHTTP(w, r)
	})
	service.TLS = ca.Server(t, "127.0.0.1")
	service.TLS.ClientAuth, service.TLS.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
	service.EnableHTTP2 = true
	service.StartTLS()
	t.Cleanup(service.Close)

	writePair(t, ca, "first", certFile, keyFile)
	vars := env{"URL": service.URL, "CA_FILE": file(t, "ca.pem", ca.PEM), "CERT_FILE": certFile, "KEY_FILE": keyFile}
	r := start(t, vars)
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
	require.Equal(t, "first HTTP/2.0", <-names)
	require.NoError(t, os.WriteFile(keyFile, []byte("half of it"), 0o600))
	for range 2 {
		require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("between")...)))
		require.Equal(t, "first HTTP/2.0", <-names)
	}
	require.Equal(t, 1, strings.Count(r.log.String(), "the file of a setting cannot be used"), r.log.String())
	require.Regexp(t, "certFile and keyFile are .*"+keyFile, r.log.String())
	writePair(t, ca, "second", certFile, keyFile)
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("b")...)))
	require.Equal(t, "second HTTP/2.0", <-names)

	r = start(t, env{"URL": service.URL, "CERT_FILE": certFile, "KEY_FILE": keyFile, "CA_FILE": file(t, "ca.pem", testenv.NewAuthority(t).PEM)})
	require.Equal(t, "the server's certificate is not valid", r.do(messages("c")...)[0].Error)
}

func TestTheAuthoritiesAreReadAnew(t *testing.T) {
	old, next := testenv.NewAuthority(t), testenv.NewAuthority(t)
	var conf atomic.Pointer[tls.Config]
	conf.Store(old.Server(t, "127.0.0.1"))
	service := testkit.NewService(nil)
	service.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return conf.Load(), nil }}
	service.StartTLS()
	t.Cleanup(service.Close)
	path := file(t, "ca.pem", old.PEM)
	// A request may meet the connection that was closed before it: it is sent again.
	r := start(t, env{"URL": service.URL, "CA_FILE": path, "MAX_ATTEMPTS": "4"})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
	both := old.PEM + next.PEM
	require.NoError(t, os.WriteFile(path, []byte(both[:len(both)-100]), 0o600))
	service.CloseClientConnections()
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("b")...)))
	require.Regexp(t, "caFile is .*"+path+".*has no end", r.log.String())
	require.NoError(t, os.WriteFile(path, []byte(both), 0o600))
	conf.Store(next.Server(t, "127.0.0.1"))
	service.CloseClientConnections()
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("c")...)))
}

func TestAddressesAreCheckedWhenTheyAreDialled(t *testing.T) {
	service := startService(t, nil)
	_, port, err := net.SplitHostPort(service.Listener.Addr().String())
	require.NoError(t, err)
	r := start(t, env{"URL": "http://localhost:" + port, "ALLOW_ADDRESSES": "private,link-local", "DIAL_TIMEOUT": "1s"})
	require.Equal(t, "the address is not allowed (allowAddresses)", r.do(messages("a")...)[0].Error)
	require.Empty(t, service.Requests())
	began := time.Now()
	r = start(t, env{"URL": "http://localhost:" + port, "ALLOW_ADDRESSES": "10.0.0.1", "MAX_ATTEMPTS": "100"})
	require.Equal(t, all(1, dataplane.SinkFailure), statuses(r.do(messages("a")...)))
	require.Less(t, time.Since(began), testTimeout/2, "it is not tried again")
	r = start(t, env{"URL": "http://localhost:" + port, "ALLOW_ADDRESSES": "127.0.0.1"})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
}

func TestAProxyIsUsedForEverything(t *testing.T) {
	proxy := startService(t, nil)
	r := start(t, env{"URL": "http://service.invalid/x", "PROXY": proxy.URL, "ALLOW_ADDRESSES": "private"})
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("a")...)))
	require.Equal(t, "http://service.invalid/x", proxy.Requests()[0].Path)
}

// Everything that can fail fails, with a secret in every place for one.
func TestNoSecretComesOut(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, r seen, _ int) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(r.Header.Get("Authorization") + canary)) // a service that repeats what it got
	})
	path := file(t, "url", service.URL+"/"+canary+"/{{.Value}}?k="+canary+"\n")
	for _, vars := range []env{
		{"BASIC_USERNAME": "u", "BASIC_PASSWORD": canary, "SIGNATURE": "sha256", "SIGNATURE_KEY": canary, "API_KEY": canary},
		{"BEARER_TOKEN": canary},
		{"BEARER_TOKEN": canary, "PROXY": "http://127.0.0.1:1"},
		{"OAUTH_TOKEN_URL": service.URL + "/token", "OAUTH_CLIENT_ID": "id", "OAUTH_SECRET": canary},
		{"OAUTH_TOKEN_URL": "http://127.0.0.1:1/token", "OAUTH_CLIENT_ID": "id", "OAUTH_SECRET": canary, "MAX_WAIT": "1s"},
	} {
		vars["URL_FILE"], vars["ON_UNAVAILABLE"] = path, "nack"
		vars["NUMATHROTTLE_HEALTH_ADDR"] = "127.0.0.1:0"
		t.Run(fmt.Sprint(len(vars)), func(t *testing.T) {
			r := start(t, vars) // looks for the canary in log, settings and answers
			for _, result := range r.do(messages("a", "..", canary)...) {
				require.NotEqual(t, dataplane.SinkSuccess, result.Status)
				require.NotContains(t, fmt.Sprint(result.NackOptions), canary)
			}
			require.NotContains(t, get(t, "http://"+r.meters.places.Addr.String()+"/metrics"), canary)
			require.Contains(t, r.log.String(), "messages were not stored")
		})
	}
}
