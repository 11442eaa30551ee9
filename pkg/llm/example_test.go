package llm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/llm"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// anthropic stands for a service that allows so many requests, tokens of prompts and tokens of answers a minute.
func anthropic() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","stop_reason":"end_turn","usage":{"input_tokens":12,"output_tokens":31}}`)
	}))
}

// Every client library that takes an *http.Client keeps within the limits.
func ExampleOpen() {
	service := anthropic()
	defer service.Close()
	limits, err := llm.Open(context.Background(), llm.Config{
		Provider: "anthropic", RequestsPerMinute: 4000, InputTokensPerMinute: 450_000, OutputTokensPerMinute: 90_000,
		Store: "memory://claude", Pool: "claude", ID: "worker-1",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limits.Close()

	client := &http.Client{Transport: limits.Transport(nil)}
	res, err := client.Post(service.URL+"/v1/messages", "application/json", strings.NewReader(`{"max_tokens":64000,"messages":[]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	fmt.Println(res.StatusCode, len(answer) > 0, err)
	// Output: 200 true <nil>
}

// Teams share one key: each has a part of the limit, by a header of its requests.
func ExampleConfig_quotas() {
	c := llm.Config{
		Provider: "openai", TokensPerMinute: 200_000, Store: "memory://shared", Pool: "shared", ID: "worker-1",
		Tag: func(r *http.Request) string { return r.Header.Get("X-Team") },
		Quotas: throttle.Quotas{
			Tags:  map[string]throttle.Quota{"search": {Reserved: 80_000}, "support": {Reserved: 40_000, Total: 100_000}},
			Other: throttle.Quota{Total: 10_000},
		},
	}
	fmt.Println(c.Validate())
	// Output: <nil>
}

// With limits of one's own, the usage in an answer corrects what its call drew.
func ExampleMeter() {
	service := anthropic()
	defer service.Close()
	tokens, err := throttle.New(throttle.Limit{Max: 50_000, Per: time.Minute, Burst: 5000})
	if err != nil {
		fmt.Println(err)
		return
	}
	estimate := func(req *http.Request) int { return int(req.ContentLength)/4 + 256 } // max_tokens
	client := &http.Client{Transport: httpthrottle.NewTransport(nil, tokens,
		httpthrottle.WithClassifier(httpthrottle.Anthropic), httpthrottle.WithCost(estimate), httpthrottle.WithMeter(llm.Meter(nil)))}
	res, err := client.Post(service.URL, "application/json", strings.NewReader(`{"messages":[],"max_tokens":256}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	st := tokens.Status()
	fmt.Println("drawn:", st.Granted, "given back:", st.Returned)
	// Output: drawn: 264 given back: 221
}
