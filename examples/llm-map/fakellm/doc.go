// Package fakellm is a small server that plays a provider of LLMs. It enforces the limits of one on its own clock, with the provider's way
// of counting, its headers, its refusals and its forms of a usage. It replaces providers for trying out or testing a limit; its answers
// consist of words of the prompt. Command cmd runs it, and [Server] is an http.Handler for tests.
//
// # Endpoints
//
//	/v1/chat/completions, /v1/responses, /v1/embeddings                       OpenAI's and its followers'; the first two also streamed
//	/v1/messages                                                              Anthropic's, also streamed
//	/v1beta/models/M:generateContent, :streamGenerateContent                  Gemini's
//	/v1beta/models/M:embedContent, :batchEmbedContents
//	/model/M/converse, /model/M/converse-stream, /model/M/invoke              Bedrock's
//	/stats                                                                    the JSON of Stats, by GET
//
// Any path may stand before them, and each is there with every provider.
//
// # Limits
//
// Each limit has a token bucket. It earns limit / minute all the time, holds at most the earnings of Config.Slice, and starts full. A call is
// served if its charges are available in all buckets, else refused. With the slice of a minute, the default, twice the limit may pass in the
// first minute; the shorter the slice, the stricter the server. Providers do the same under "quantized" limits: Azure checks requests in
// slices of 1 or 10 seconds. Limits per day are refilled continuously, or at the midnight of Config.DayZone.
//
// E is the estimate of a prompt, M the maximum of the answer. U is input, W what of it is put into a cache beside U, R what is read from one,
// O the output, and b is Config.OutputWeight. A call counts as one request; at Gemini, each input of a call for embeddings does.
//
//	provider        limit   at arrival           in the end
//	openai          tokens  max(M, E)            the same; refused calls count as requests
//	azure           tokens  E + M                the same
//	anthropic       input   E without R          U + W
//	                output  0                    O
//	                tokens  E + M                U + W + R + b x O
//	gemini          input   E                    U + R; tokens as input
//	                output  0                    O
//	bedrock         tokens  E without R + M      U + W + b x O
//	bedrock-mantle  input   E without R + M      U + W + O
//	                output  0                    O; answers end where it does
//	groq            input   E without R          U + W
//	                output  0                    O
//	                tokens  E without R + M      U + W + b x O
//	self-hosted     input   E                    U + W + R
//	                output  0                    O
//	                tokens  E + M                U + W + R + b x O
//
// E is a quarter of the characters at OpenAI and Azure, elsewhere Config.TokensPerByte of the bytes, from which the real prompt differs by
// Config.Spread; both are rounded up. A call without a maximum has Config.DefaultMaxTokens. Config.CachedInput decides whether R counts. A
// limit on output only refuses calls when there is none of it left: M costs nothing there. What a call uses above its charge is debt.
//
// # What a call uses
//
// Config.CachedShare and Config.WriteShare are the parts of a prompt that are read from a cache and put into one. The header Fakellm-Cached
// replaces the first for one call, and Fakellm-Usage, with the JSON of Usage, all of it. Config.Prices make Stats.Millionths and Server.Cost.
//
// # Other refusals
//
// More concurrent calls than Config.InFlight are answered as an overload (529 by Anthropic, 503 elsewhere). Calls above Config.Quota get
// the answer of a spent account, which no waiting helps. Prompts above Config.ContextTokens, calls for embeddings above what the provider
// takes, a wrong key and an invalid JSON request are the caller's fault.
//
// # Odd answers
//
// Config.Forms makes answers of the chat endpoint look like those of other services. They include content as a list, unrequested events, a
// refusal or an error with the status 200, a page, and no content. The charge of a call stays the same.
package fakellm
