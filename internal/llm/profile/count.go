package profile

import (
	"math"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// An Estimate describes a call before it is made, in tokens.
type Estimate struct {
	// Prompt is the estimate of the prompt, as the limit is charged for it, and Least what the model reads of it at least.
	Prompt, Least int64
	// Answer is the learned length of an answer, and Longest the longest that the request allows, or the learned one if it does not say.
	Answer, Longest int64
	// Allowed is how long the answer can be at most; a usage with more is not believed.
	Allowed int64
}

// most is the largest figure: more than any limit grants, whose draw is refused.
const most = math.MaxInt32

// Drawn returns the tokens that a limit draws for a call: at least 1.
func (r Rule) Drawn(e Estimate) int {
	prompt, answer := r.parts(e)
	if r.Draw&Larger != 0 {
		return int(min(max(prompt, answer, 1), most))
	}
	return int(min(max(prompt+answer, 1), most))
}

// parts returns what of the draw is for the prompt, and what for the answer.
func (r Rule) parts(e Estimate) (prompt, answer int64) {
	if r.Draw&Prompt != 0 {
		prompt = e.Prompt
	}
	switch {
	case r.Draw&Longest != 0:
		answer = e.Longest
	case r.Draw&Answer != 0:
		answer = e.Answer
	}
	return min(prompt, most), min(answer, most)
}

// Charged returns what a limit counts for a call in the end, by the usage of a whole answer. What that does not say is counted as drawn. A
// token of output counts weight times. The result is never below what was surely used,
// and never above what was drawn and what the answer can have been.
func (r Rule) Charged(e Estimate, u usage.Usage, weight int) int {
	prompt, answer := r.parts(e)
	if u.HasTotal && !u.HasInput && !u.HasOutput && r.Settle&Uncached != 0 && r.Settle&Written != 0 {
		return int(min(max(int64(u.Total), e.Least), prompt+e.Allowed, most)) // only the sum is known
	}
	if r.Settle&AllInput == 0 {
		prompt = 0
	} else if u.HasInput {
		prompt = r.ChargedPrompt(e, u)
	}
	switch {
	case r.Settle&Written == 0:
		answer = 0
	case u.HasOutput:
		answer = min(int64(u.Output), e.Allowed) * int64(max(weight, 1))
	}
	return int(min(prompt+answer, most))
}

// ChargedPrompt returns what of it is for the prompt.
func (r Rule) ChargedPrompt(e Estimate, u usage.Usage) (tokens int64) {
	read := int64(u.Input + u.CacheWrites + u.CacheReads)
	uncached := int64(u.Input) + max(e.Least-read, 0) // it cannot have been less
	if r.Settle&Uncached != 0 {
		tokens += uncached
	}
	if r.Settle&Writes != 0 {
		tokens += int64(u.CacheWrites)
	}
	if r.Settle&Reads != 0 {
		tokens += int64(u.CacheReads)
	}
	return tokens
}
