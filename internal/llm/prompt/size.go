// Package prompt measures requests to LLMs: how much text they ask a model to read, the media beside it, and how long the answer may be. It
// learns how many tokens the text takes.
package prompt

import "math"

// A Size is what a request asks a model to read and to write.
type Size struct {
	// Bytes and Chars are the length of the text that the model reads (system prompts, messages, tools), in bytes of UTF-8 and in
	// characters.
	Bytes, Chars int64
	// Tokens is the cost of the rest of the prompt: of images, sounds and files by the figures of a [Media], and of text that comes as
	// tokens.
	Tokens int64
	// Inputs is the number of texts or documents of a call for embeddings; 1 for any other call.
	Inputs int64
	// Answer is the longest answer that the request allows, in tokens, times the number of answers; 0 if it does not say. Silent means that
	// the call has no text for an answer, such as one for embeddings.
	Answer int64
	Silent bool
	// Model is the model that the body names; empty for none, or none of a usual length.
	Model string
}

// Most bounds figures of a Size: more than any limit grants.
const Most = math.MaxInt32

// LeastPerByte is the smallest number of tokens of a byte of text: no tokenizer packs more.
const LeastPerByte = 0.05

// Least returns the tokens that a model reads for the prompt at least.
func (s Size) Least() int64 { return int64(math.Ceil(LeastPerByte * float64(s.Bytes))) }

// ByChars returns the estimate of providers that count characters: four are a token.
func (s Size) ByChars() int64 { return min((s.Chars+3)/4+s.Tokens, Most) }
