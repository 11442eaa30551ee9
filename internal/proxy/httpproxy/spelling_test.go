package httpproxy

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A header that Connection names ends at the proxy. So no rule goes by it, and the service gets none.
func TestHeadersThatEndAtTheProxy(t *testing.T) {
	for _, named := range []string{"X-Cost", "x-cost", "close, X-Cost", "keep-alive,x-COST ", "te, X-Cost"} {
		u := serve(t, hello)
		l := throttletest.New()
		p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "header X-Cost"})
		res, _ := raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Cost: 0\r\nConnection: "+named+"\r\n\r\n")
		require.Equal(t, 200, res.StatusCode, named)
		require.Equal(t, 1, l.Draws()[0].Cost, "the cost of a request without the header")
		require.Empty(t, u.Requests()[0].Header.Get("X-Cost"), named)
	}
	u := serve(t, hello)
	for rule, header := range map[string]string{"key": "Authorization", "header X-Tenant": "X-Tenant", "header X-Forwarded-For": "X-Forwarded-For"} {
		l := &tagged{Limiter: throttletest.New()}
		p := start(t, Config{Upstream: u.URL, Limiter: l, Tag: rule})
		res, _ := raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header+": a\r\nConnection: "+header+"\r\n\r\n")
		require.Equal(t, 200, res.StatusCode)
		require.Empty(t, l.tags, rule)
		require.Empty(t, u.Requests()[0].Header.Get(header))
		u.Forget()
	}
	for _, name := range []string{"Connection", "proxy-authorization", "Host", "content-length", "TE", "X-Numathrottle-Token"} {
		for _, c := range []Config{{Cost: "header " + name}, {Tag: "header " + name}} {
			c.Upstream = u.URL
			require.ErrorContains(t, c.Validate(), "(one that is passed on)", name)
		}
	}
}

// Many services read X_Tenant as X-Tenant.
func TestAHeaderInAnotherSpelling(t *testing.T) {
	u := serve(t, hello)
	for _, c := range []Config{{Cost: "header X-Cost"}, {Tag: "header X-Cost"}} {
		c.Upstream, c.Limiter = u.URL, throttletest.New()
		p := start(t, c)
		for header, want := range map[string]int{"x-cost: 7\r\n": 200, "X_Cost: 7\r\n": 400, "X-Cost: 7\r\nx_cost: 9\r\n": 400} {
			res, body := raw(t, p, "GET / HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n")
			require.Equal(t, want, res.StatusCode, "%s %s", header, body)
		}
	}
}

// keyOf returns the tag of a request with a header and a query, and whether it is refused.
func keyOf(t *testing.T, name, value, query string) (tag string, refused bool) {
	t.Helper()
	return keyBy(t, "key", name, value, query)
}

// keyBy is keyOf with a rule.
func keyBy(t *testing.T, text, name, value, query string) (tag string, refused bool) {
	t.Helper()
	rule, ok := parseTag(text)
	require.True(t, ok)
	r := &http.Request{Header: http.Header{}, URL: &url.URL{RawQuery: query}}
	if name != "" {
		r.Header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	tag, err := rule.of(&message{req: r})
	return tag, err != nil
}

// One key has one tag, however and wherever it is written.
func TestOneKeyHasOneTag(t *testing.T) {
	for _, key := range []string{"sk-1", "a+b/c=="} {
		want, _ := keyOf(t, "Authorization", "Bearer "+key, "")
		require.Regexp(t, `^key-[0-9a-f]{16}$`, want)
		for _, value := range []string{
			"Bearer " + key + ";1", "Bearer " + key + ",n=1", `Token token="` + key + `"; n=1`,
			"Token token=\"" + key + "\"\tn=1", `Bearer token="` + key + `",n=1`,
			key, "bearer  " + key, "BEARER\t" + key + " ", "Token " + key, "ApiKey " + key, "Bearer " + key + " more", `Token token="` + key + `", nonce="x"`,
			"token=" + key, "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":")), "basic " + base64.StdEncoding.EncodeToString([]byte(":"+key)),
		} {
			tag, refused := keyOf(t, "Authorization", value, "")
			require.False(t, refused)
			require.Equal(t, want, tag, value)
		}
		for _, name := range []string{"X-Api-Key", "Api-Key", "api_key", "X_API_KEY", "X-Goog-Api-Key", "Ocp-Apim-Subscription-Key", "X-Auth-Token"} {
			tag, _ := keyOf(t, name, key, "")
			require.Equal(t, want, tag, name)
		}
		for _, value := range []string{"Bearer bearer\t" + key, "bearer token " + key, "Token Bearer  " + key} {
			tag, _ := keyOf(t, "Authorization", value, "")
			require.Equal(t, want, tag, value)
			tag, _ = keyOf(t, "X-Api-Key", value, "")
			require.Equal(t, want, tag, value)
		}
		escaped := url.QueryEscape(key)
		for _, name := range []string{"key=", "alt=sse&key=", "a;key=", "%6bey=", "api-key=", "api.key=", "api+key=", "+key=", "Access_Token="} {
			query := name + escaped
			tag, _ := keyOf(t, "", "", query)
			require.Equal(t, want, tag, query)
			tag, _ = keyOf(t, "X-Api-Key", key, query)
			require.Equal(t, want, tag, query)
			_, refused := keyOf(t, "X-Api-Key", "any", query)
			require.True(t, refused, "the service may go by the one in the query: %s", query)
		}
	}
	one, _ := keyOf(t, "X-Api-Key", "acme one", "")
	two, _ := keyOf(t, "X-Api-Key", "beta one", "")
	require.NotEqual(t, one, two, "keys with a blank")
	spaced, _ := keyOf(t, "X-Api-Key", " acme  one\t", "")
	require.Equal(t, one, spaced)
	_, refused := keyOf(t, "", "", "key=a&key=b")
	require.True(t, refused)
	tag, refused := keyOf(t, "", "", "keys=a&pageToken=b&key=")
	require.False(t, refused)
	require.Empty(t, tag)
}

// Where an operator says in which place the key is, anything elsewhere neither makes a tag nor refuses a request.
func TestAKeyInOnePlace(t *testing.T) {
	for _, c := range []struct{ rule, name, value, query, sameAs string }{
		{"key headers", "Authorization", "Bearer sk-1", "key=PROJ-7&token=next", "sk-1"},
		{"key headers", "X-Api-Key", "sk-1", "api_key=made-up", "sk-1"},
		{"key headers", "", "", "key=PROJ-7", ""},
		{"key query", "Authorization", "Bearer made-up", "alt=sse&key=sk-1", "sk-1"}, // Google: a key for the project, a token for the user
		{"key query", "X-Api-Key", "made-up", "", ""},
	} {
		want, _ := keyOf(t, "X-Api-Key", c.sameAs, "")
		tag, refused := keyBy(t, c.rule, c.name, c.value, c.query)
		require.False(t, refused, c)
		require.Equal(t, want, tag, c)
	}
	_, refused := keyBy(t, "key query", "", "", "key=a&key=b")
	require.True(t, refused)
	for _, text := range []string{"key Headers", "key body", "key headers query", "keys"} {
		_, ok := parseTag(text)
		require.False(t, ok, text)
	}
}

func TestOneUserHasOneTag(t *testing.T) {
	const pair = "user:pa?ss>" // its base64 has a character of which the alphabets differ, and padding
	want, _ := keyOf(t, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)), "")
	plain := base64.RawStdEncoding.EncodeToString([]byte(pair))
	for _, value := range []string{
		"basic  " + plain, "BASIC\t" + plain, "Basic " + plain + "=", "Basic " + plain + "====", "Basic " + base64.RawURLEncoding.EncodeToString([]byte(pair)),
		"Basic " + plain[:4] + "!" + plain[4:], "Basic " + plain + "=x",
	} {
		tag, _ := keyOf(t, "Authorization", value, "")
		require.Equal(t, want, tag, value)
	}
	other, _ := keyOf(t, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("user:other")), "")
	require.NotEqual(t, want, other)

	// Schemes that sign each request anew.
	for _, values := range [][]string{
		{
			"AWS4-HMAC-SHA256 Credential=AKIA1/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=1",
			"AWS4-HMAC-SHA256 SignedHeaders=host,Credential=AKIA1/20260102/eu-west-1/bedrock/aws4_request,Signature=2",
		},
		{`Digest username="u", realm="r", nonce="1"`, `Digest realm="r",username="u",nonce="2"`, `digest key=1, token="2" ,username = "u"`},
		{
			"GOOG4-RSA-SHA256 Credential=a@b.iam/20260101/auto/storage/goog4_request, Signature=1",
			"GOOG4-RSA-SHA256 Username=x,Credential=a@b.iam/20260102/auto/storage/goog4_request,Signature=2",
		},
		{`OAuth oauth_consumer_key="c",oauth_token="1"`, `OAuth token="x", oauth_token="2", oauth_consumer_key="c"`},
		{`Signature keyId="k",signature="1"`, `Signature username="1",signature="2",keyId="k"`},
		{`Hawk id="h", mac="1"`, `hawk key="1", mac="2", id="h"`},
		{"AWS AKIA1:1", "aws AKIA1:2"},
		{"SharedKey acct:1", "SharedKey acct:2"},
		{"GOOG1 AKIA1:1", "GOOG1 AKIA1:2"},
		{"SharedKeyLite acct:1", "SharedKeyLite acct:2"},
	} {
		one, _ := keyOf(t, "Authorization", values[0], "")
		for _, value := range values[1:] {
			two, _ := keyOf(t, "Authorization", value, "")
			require.Equal(t, one, two, value)
		}
		require.NotEmpty(t, one)
	}
	aws, _ := keyOf(t, "Authorization", "AWS4-HMAC-SHA256 Credential=AKIA1/20260101/us-east-1/bedrock/aws4_request", "")
	query, _ := keyOf(t, "", "", "X-Amz-Credential=AKIA1%2F20260101%2Fus-east-1%2Fs3%2Faws4_request")
	require.Equal(t, aws, query)
	google, _ := keyOf(t, "Authorization", "GOOG4-RSA-SHA256 Credential=a@b.iam/20260101/auto/storage/goog4_request", "")
	query, _ = keyOf(t, "", "", "X-Goog-Credential=a%40b.iam%2F20260102%2Fauto%2Fstorage%2Fgoog4_request&X-Goog-Signature=1")
	require.Equal(t, google, query)
	query, _ = keyOf(t, "", "", "GoogleAccessId=a%40b.iam&Expires=1&Signature=1")
	require.Equal(t, google, query)
	query, _ = keyOf(t, "", "", "AWSAccessKeyId=AKIA1&Expires=1&Signature=1")
	require.Equal(t, aws, query)
}

func TestOneHostHasOneTag(t *testing.T) {
	for _, c := range []struct{ host, port, want string }{
		{"example.com", "80", "example.com"},
		{"Example.COM.", "443", "example.com"},
		{"example.com:443", "443", "example.com"},
		{"example.com:8443", "443", "example.com:8443"},
		{"[0:0::1]:80", "80", "[::1]"},
		{"0x7f.1:8080", "80", "127.0.0.1:8080"},
		{"example.com:443", "", "example.com:443"},
	} {
		tag, err := hostTag(&message{host: c.host, port: c.port})
		require.NoError(t, err)
		require.Equal(t, c.want, tag, c.host)
	}
}

// A tag that stands in the kept part of a body stands nowhere else, or the service gets no whole body.
func TestASecondTagBehindTheBuffer(t *testing.T) {
	pad := strings.Repeat("x", 200)
	for _, chunked := range []bool{false, true} {
		for _, cost := range []string{"", "bytes/1000", "llm"} {
			u := serve(t, hello)
			p := start(t, Config{Upstream: u.URL, Limiter: throttletest.New(), Tag: "json tenant", Cost: cost, BodyBuffer: 100})
			res, text := post(t, p.url, `{"tenant":"a","pad":"`+pad+`","other":{"tenant":"b"}}`, chunked)
			require.Equal(t, 200, res.StatusCode, text)
			for _, second := range []string{`"tenant":"b"`, `"tenant":null`, `"ten\u0061nt":"b"`, `"Tenant":"b"`} {
				res, text := post(t, p.url, `{"tenant":"a","pad":"`+pad+`",`+second+`}`, chunked)
				require.Equal(t, 400, res.StatusCode, "%s %s", second, text)
			}
			for i, r := range u.Requests() {
				require.Equal(t, i == 0, strings.HasSuffix(r.Body, "}"), "the service has no whole body: %s", r.Body)
			}
		}
	}
}

// Whatever a service may read as a cost or a tag, in its own way, is what the rule reads, or the request does not leave.
func TestFieldsInOtherSpellings(t *testing.T) {
	zeros := strings.Repeat("0", 3000)
	u := serve(t, hello)
	for _, rule := range []Config{{Cost: "json options.max_tokens"}, {Tag: "json options.max_tokens"}} {
		rule.Upstream, rule.Limiter = u.URL, throttletest.New()
		p := start(t, rule)
		for _, body := range []string{
			`{"options":{"Max_Tokens":5000}}`, `{"options":{"max_tokens":1,"MAX_TOKENS":5000}}`, `{"Options":{"max_tokens":5000}}`,
			`{"options":{"maxTokens":5000}}`, `{"options":{"max_tokenſ":5000}}`, `{"options":{"max_tokens":1},"options":{}}`,
			`{"options":{"max_tokens":1},"options":null}`, `{"options":{"max_tokens":"` + zeros + `5000"}}`,
			`{"options":{"max\_tokens":5000}}`, `{"options":{"max_tokens":"\5000"}}`, `{"options":{"max_tokens":{}}}`,
			`{"options":{"max\u005Ftokens":5000,"max_tokens":1}}`,
			`{"options":{"max_tokens":[5000]}}`, `{"options":{"max_tokens":` + "1." + zeros + `}}`,
		} {
			res, text := send(t, http.MethodPost, p.url, body)
			require.Equal(t, 400, res.StatusCode, "%s %.100s %s", rule.Cost+rule.Tag, body, text)
		}
		for _, body := range []string{
			`{"options":{"max_tokens":5}}`, `{"options":{"max\u005Ftokens":5}}`, `{"options":{"max_tokens":5,"maxTokens":5}}`,
			`{"options":{"max_tokens":"00005"}}`, `{"Max_Tokens":7,"options":{"max_tokens":5}}`, `{"options":{}}`, `{}`,
		} {
			res, text := send(t, http.MethodPost, p.url, body)
			require.Equal(t, 200, res.StatusCode, "%s %.100s %s", rule.Cost+rule.Tag, body, text)
		}
	}
}

// A limit on the answer in a text is read like a number, or the request does not leave.
func TestLimitsInTexts(t *testing.T) {
	zeros := strings.Repeat("0", 1000)
	long := `{"max_tokens":"` + zeros + `90000"}`
	u := serve(t, hello)
	l := throttletest.New()
	p := start(t, Config{Upstream: u.URL, Limiter: l, Cost: "llm"})
	res, text := send(t, http.MethodPost, p.url, long)
	require.Equal(t, 200, res.StatusCode, text)
	require.GreaterOrEqual(t, l.Draws()[0].Cost, 90_000)
	for _, value := range []string{`"90_000"`, `"９００００"`, `"0x15f90"`, `"90000 "` + "\n,\"n\":\"2 \"", `"` + zeros + zeros + zeros + `90000"`} {
		res, text := send(t, http.MethodPost, p.url, `{"max_tokens":`+value+`}`)
		require.Equal(t, map[bool]int{true: 200, false: 400}[strings.Contains(value, "\n")], res.StatusCode, "%.40s %s", value, text)
	}
	for _, value := range []string{`"auto"`, `"inf"`, `null`, `-1`, `"-1"`} {
		res, text := send(t, http.MethodPost, p.url, `{"max_tokens":`+value+`}`)
		require.Equal(t, 200, res.StatusCode, "%s %s", value, text)
	}
	form := "--x\r\nContent-Disposition: form-data; name=max_tokens\r\n\r\n" + zeros + "90000\r\n--x--\r\n"
	res, text = send(t, http.MethodPost, p.url, form, "Content-Type", "multipart/form-data; boundary=x")
	require.Equal(t, 400, res.StatusCode, text)
}

// One number has one tag, in every notation.
func TestOneNumberHasOneTag(t *testing.T) {
	rule, _ := parseTag("json a")
	for want, spellings := range map[string][]string{
		"43":               {"43", "43.0", "4.3e1", "430E-1", "0.43e+2", "43.000000000000000000000000000000000000000000000000001", `"43"`},
		"0":                {"0", "-0", "0.0", "-0e5", "1e-400"},
		"9007199254740993": {"9007199254740993", "9007199254740993.0", "900719925474099.3e1"},
		"4.5":              {"4.5", "4.50", "45e-1"},
		"-7":               {"-7", "-7.0", "-70e-1"},
	} {
		for _, text := range spellings {
			tag, err := rule.of(&message{body: []byte(`{"a":` + text + `}`), whole: true})
			require.NoError(t, err)
			require.Equal(t, want, tag, text)
		}
	}
}

// A tagged limiter keeps the tags that it is asked for.
type tagged struct {
	throttle.Limiter

	tags []string
}

func (l *tagged) ForTag(tag string) throttle.Limiter {
	l.tags = append(l.tags, tag)
	return l.Limiter
}
