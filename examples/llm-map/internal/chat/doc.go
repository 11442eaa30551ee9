// Package chat writes the requests of the OpenAI-compatible chat endpoint, and reads its answers.
//
// Requests are strict: what a user configures is sent as it is, and nothing is refused because of the
// name of a model. Answers are read tolerantly: what a field means counts, not its type. So a content may be a
// text or a list of parts, a number may be a text, a field may be missing or unknown, and an answer may
// come as one object or as events. What is no answer is a Fault, which says what it was instead.
//
// The package is pure: it has no clock, no I/O and no state. All its functions may be called
// from any number of goroutines at once.
package chat
