// Package llm keeps the calls of an LLM within the limits of one account at its provider, as the provider counts them: requests, tokens of
// prompts and of answers, calls in flight, by minute and by day. All processes with the same store and pool share the limits. [Open] joins
// their pools, and [Limits.Transport] makes an [http.RoundTripper] for any client library that takes an *http.Client:
//
//	limits, err := llm.Open(ctx, llm.Config{
//		Provider:              "anthropic",
//		RequestsPerMinute:     4000,
//		InputTokensPerMinute:  450_000,
//		OutputTokensPerMinute: 90_000,
//		Store:                 "redis://redis:6379",
//		Pool:                  "claude",
//	})
//	if err != nil { ... }
//	defer limits.Close()
//	client := &http.Client{Transport: limits.Transport(nil)}
//
// Switch off the retries of the library itself: the transport waits and tries again as the service's refusals ask for; see package
// httpthrottle.
//
// # What a call counts for
//
// A call draws from all limits that are set, or from none. What it draws is an estimate: the text of the prompt, system prompts and tools
// included, at a number of tokens per byte that is learned from the answers, and for the answer its longest or its likely length. The usage
// in the answer corrects what the provider corrects, and adds what the estimate lacked. Which limit counts what, and whether input from a
// cache counts, depends on the provider; docs/llm.md has the table.
//
// An answer without a usage costs what was drawn. An OpenAI stream has one only if its request sets stream_options.include_usage.
package llm
