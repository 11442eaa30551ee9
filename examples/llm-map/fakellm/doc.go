// Package fakellm is a small server of the OpenAI-compatible chat endpoint that enforces
// requests and tokens per minute on its own clock, with the headers and refusals of the
// real providers. It stands in for them where a limit is to be tried out or tested; its
// answers are made of the words of the prompt. Command cmd runs it.
//
// # What is enforced
//
// Requests and tokens each have a token bucket, as OpenAI and Anthropic have: it earns
// limit / minute all the time, holds at most what it earns in Config.Slice, and starts
// full. A call is served when one request and the tokens it is charged are there, else it
// is refused. With the slice of a minute, the default, twice the limit may pass in the
// first minute; the shorter the slice, the stricter the server. Providers do the same
// under "quantized" limits: Azure looks at requests in slices of 1 or 10 seconds.
//
// What a call is charged differs by provider:
//
//	openai      max(max_tokens, characters / 4), at arrival, never corrected; refused calls count as requests
//	azure       characters / 4 + max_tokens, at arrival, never corrected
//	anthropic   the same at arrival, corrected to the real usage when the call ends
//	self-hosted as anthropic, with neither headers nor bodies that say when to come again: what a plain gateway does
//
// Quotients are rounded up, and characters are those of the contents of all messages. A
// call without max_tokens is charged Config.DefaultMaxTokens in their place. What Anthropic
// counts as two limits, input and output, is one here.
//
// # What else is refused
//
// More calls at once than Config.InFlight are answered as an overload (529 by Anthropic,
// 503 elsewhere); calls above Config.Quota as a spent account, which no waiting helps;
// prompts above Config.ContextTokens, a wrong key and a request that is no JSON as the
// caller's fault.
//
// # Odd answers
//
// Config.Forms makes answers look as they do elsewhere: the content as a list, events that nobody asked for, a refusal or an
// error with the status 200, a page, nothing at all. What a call is charged stays the same.
package fakellm
