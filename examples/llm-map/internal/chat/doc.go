// Package chat writes the requests of three APIs of language models, and parses their answers: the chat completions that most services
// have, OpenAI's responses, and Anthropic's messages. Any of them may answer a request of any other, as gateways do: what a body holds
// counts.
//
// Requests are strict: a user's configuration is sent unchanged, and nothing is refused because of the name of a model. Answers are parsed
// tolerantly: the meaning of a field counts, not its type. A content may be a text or a list of parts, and a number may be a text.
// Fields may be missing or unknown. An answer may come as one object or as events. A body without an answer is a Fault, which describes it.
//
// The package is pure: it has no clock, no I/O and no state. All its functions are safe for concurrent use.
package chat
