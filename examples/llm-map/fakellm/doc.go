// Package fakellm is a small server of the OpenAI-compatible chat endpoint. It enforces requests and tokens per minute on its own clock,
// with the headers and refusals of the real providers. It replaces them for trying out or testing a limit; its answers consist of words of
// the prompt. Command cmd runs it.
//
// # Limits
//
// Requests and tokens each have a token bucket, like those of OpenAI and Anthropic. It earns limit / minute all the time, holds at most the
// earnings of Config.Slice, and starts full. A call is served if one request and its charge in tokens are available, else refused. With the
// slice of a minute, the default, twice the limit may pass in the first minute; the shorter the slice, the stricter the server. Providers
// do the same under "quantized" limits: Azure checks requests in slices of 1 or 10 seconds.
//
// The charge of a call differs by provider:
//
//	openai      max(max_tokens, characters / 4), at arrival, never corrected; refused calls count as requests
//	azure       characters / 4 + max_tokens, at arrival, never corrected
//	anthropic   the same at arrival, corrected to the real usage when the call ends
//	self-hosted as anthropic, without headers or bodies that say when to retry: like a plain gateway
//
// Quotients are rounded up, and characters are those of the contents of all messages. A call without max_tokens is charged
// Config.DefaultMaxTokens instead. Anthropic's two limits, input and output, are one here.
//
// # Other refusals
//
// More concurrent calls than Config.InFlight are answered as an overload (529 by Anthropic, 503 elsewhere). Calls above Config.Quota get
// the answer of a spent account, which no waiting helps. Prompts above Config.ContextTokens, a wrong key and an invalid JSON request are
// the caller's fault.
//
// # Odd answers
//
// Config.Forms makes answers look like those of other services. They include content as a list, unrequested events, a refusal or an error
// with the status 200, a page, and no content. The charge of a call stays the same.
package fakellm
