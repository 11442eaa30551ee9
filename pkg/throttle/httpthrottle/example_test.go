package httpthrottle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

func ExampleNewTransport() {
	calls := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer service.Close()

	limiter, err := throttle.New(throttle.Limit{Max: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = limiter.Close() }()

	client := &http.Client{Transport: httpthrottle.NewTransport(nil, limiter)}
	res, err := client.Post(service.URL, "text/plain", strings.NewReader("hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = res.Body.Close()
	fmt.Println(res.StatusCode, "after", calls, "calls and", limiter.Status().Granted, "tokens")
	// Output: 200 after 2 calls and 2 tokens
}

// Tokens and requests of an LLM are limited together. A draw is an estimate, which the
// usage in the answer corrects.
func ExampleUsageMeter() {
	llm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[],"usage":{"total_tokens":31}}`)
	}))
	defer llm.Close()

	tokens, err := throttle.New(throttle.Limit{Max: 50_000, Per: time.Minute, Burst: 5000})
	if err != nil {
		fmt.Println(err)
		return
	}
	requests, err := throttle.New(throttle.Limit{Max: 500, Per: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	estimate := func(req *http.Request) int { return int(req.ContentLength)/4 + 256 } // max_tokens

	client := &http.Client{Transport: httpthrottle.NewTransport(nil, throttle.All(tokens, throttle.PerCall(requests)),
		httpthrottle.WithClassifier(httpthrottle.OpenAI),
		httpthrottle.WithCost(estimate),
		httpthrottle.WithMeter(httpthrottle.UsageMeter(nil)))}
	res, err := client.Post(llm.URL, "application/json", strings.NewReader(`{"messages":[],"max_tokens":256}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	st := tokens.Status()
	fmt.Println("drawn:", st.Granted, "given back:", st.Returned)
	// Output: drawn: 264 given back: 233
}

// Class and time to retry come through a client library as an error.
func ExampleRefusalsAsErrors() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": "rate_limit_exceeded"}})
	}))
	defer service.Close()

	client := &http.Client{Transport: httpthrottle.NewTransport(nil, nil, httpthrottle.RefusalsAsErrors())}
	_, err := client.Get(service.URL)
	if refused, ok := errors.AsType[*throttle.Error](err); ok {
		fmt.Println(refused.Reason, refused.RetryAfter)
	}
	if refused, ok := errors.AsType[*httpthrottle.RefusedError](err); ok {
		fmt.Println(refused.Refusal.Class, refused.Refusal.Code)
	}
	// Output:
	// refused 10m0s
	// wait rate_limit_exceeded
}
