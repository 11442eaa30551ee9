package httpthrottle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

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
