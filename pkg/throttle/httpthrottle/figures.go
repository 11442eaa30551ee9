package httpthrottle

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// A UsageReader reads the usage of one answer of an LLM from its usage objects, in any dialect. Where several come, as in a stream, the
// largest figure of each field counts, for they are sums. The zero UsageReader has read nothing. It is not safe for concurrent use.
type UsageReader struct {
	// Of the prompt: prompt has the caches in it, input (Anthropic, Bedrock) has them beside it, tools is beside it.
	prompt, input, tools, missed int
	inside, beside               struct{ writes, reads int }
	output, candidates, thoughts int
	reasoning                    int // a part of output, for most services
	total                        int
	wrong                        bool // a figure for prompt, output or total is impossible
}

// Add reads a usage object, such as the value of "usage". It returns false if it is no JSON object.
func (r *UsageReader) Add(object []byte) bool {
	f := figures{}
	if json.Unmarshal(object, &f) != nil {
		return false
	}
	for _, part := range [...]string{"tokens", "billed_units"} { // Cohere
		if n, _ := f.most("input_tokens", "output_tokens"); n == 0 && f.part(part) != nil {
			f = f.part(part)
		}
	}
	in, out := f.part("prompt_tokens_details"), f.part("completion_tokens_details")
	if in == nil {
		in = f.part("input_tokens_details")
	}
	if out == nil {
		out = f.part("output_tokens_details")
	}
	raise := func(n *int, of figures, names ...string) (possible bool) {
		most, possible := of.most(names...)
		*n = max(*n, most)
		return possible
	}
	raise(&r.tools, f, "toolUsePromptTokenCount")
	raise(&r.missed, f, "prompt_cache_miss_tokens")
	raise(&r.inside.reads, f, "cachedContentTokenCount", "prompt_cache_hit_tokens", "cached_tokens")
	raise(&r.inside.reads, in, "cached_tokens")
	raise(&r.inside.writes, in, "cache_write_tokens", "cache_creation_tokens")
	raise(&r.beside.reads, f, "cache_read_input_tokens", "cacheReadInputTokens")
	raise(&r.beside.writes, f, "cache_creation_input_tokens", "cacheWriteInputTokens")
	raise(&r.thoughts, f, "thoughtsTokenCount")
	raise(&r.reasoning, out, "reasoning_tokens")
	var short, long int
	made := f.part("cache_creation")
	raise(&short, made, "ephemeral_5m_input_tokens")
	raise(&long, made, "ephemeral_1h_input_tokens")
	r.beside.writes = max(r.beside.writes, short+long)
	possible := raise(&r.prompt, f, "prompt_tokens", "promptTokenCount")
	possible = raise(&r.input, f, "input_tokens", "inputTokens") && possible
	possible = raise(&r.output, f, "completion_tokens", "output_tokens", "outputTokens") && possible
	possible = raise(&r.candidates, f, "candidatesTokenCount") && possible
	possible = raise(&r.total, f, "total_tokens", "totalTokenCount", "totalTokens") && possible
	r.wrong = r.wrong || !possible
	return true
}

// AddHeader reads the headers in which Amazon Bedrock counts a call of InvokeModel.
func (r *UsageReader) AddHeader(h http.Header) {
	const prefix = "X-Amzn-Bedrock-"
	read := func(n *int, name string) {
		count, _ := tokenCount(h.Get(prefix + name))
		*n = max(*n, count)
	}
	read(&r.input, "Input-Token-Count")
	read(&r.output, "Output-Token-Count")
	read(&r.beside.reads, "Cache-Read-Input-Token-Count")
	read(&r.beside.writes, "Cache-Write-Input-Token-Count")
}

// mostDoubted is the longest part of a call that is only concluded, or contradicts another figure: more than any model takes. More than that
// isn't believed.
const mostDoubted = 10_000_000

// Usage returns the usage; false if no figure was above 0, or one for the prompt, the output or the total is impossible: below 0 or above 1e9.
//
// Figures that contradict each other never lower the cost of what was surely used. More cached tokens than the prompt has stand beside it,
// and more reasoning than the output has stands beside that. What the total holds beyond the other figures is output, such as thoughts; without a
// prompt it is the prompt.
func (r *UsageReader) Usage() (Usage, bool) {
	if *r == (UsageReader{}) || r.wrong {
		return Usage{}, false
	}
	prompt, output := r.sides()
	cached := r.inside // a gateway may give the same figures in both dialects
	named := cached.reads+cached.writes == 0 && r.beside.reads+r.beside.writes > 0
	cached.reads, cached.writes = max(cached.reads, r.beside.reads), max(cached.writes, r.beside.writes)
	sum := cached.reads + cached.writes
	native := named && (r.prompt < r.input || r.prompt == 0) // Anthropic, Bedrock
	apart := sum > prompt || native || named && r.total >= prompt+sum+output
	if apart && sum > mostDoubted {
		cached.reads, cached.writes, sum = 0, 0, 0
	}
	u := Usage{Input: prompt, CacheWrites: cached.writes, CacheReads: cached.reads, Output: output}
	if !apart {
		u.Input -= sum
	}
	rest := r.total - (u.Input + u.CacheWrites + u.CacheReads + u.Output)
	known := prompt+sum+output > 0
	switch {
	case rest <= 0 || known && rest > mostDoubted:
	case prompt+sum == 0:
		u.Input += rest
	default:
		u.Output += rest
	}
	u.Total = r.counted(u, native, rest > mostDoubted && known)
	return u, true
}

// sides returns the tokens of the prompt, as the service counts it, and of the answer.
func (r *UsageReader) sides() (prompt, output int) {
	prompt = max(r.prompt+r.tools, r.input)
	if r.missed > 0 {
		prompt = max(prompt, r.missed+r.inside.reads)
	}
	output = max(r.output, r.candidates+r.thoughts)
	if r.reasoning > r.output && r.reasoning <= mostDoubted {
		output = max(output, r.output+r.reasoning)
	}
	return prompt, output
}

// counted returns Usage.Total: the reported total if it is believed, but no less than the sum. The cache reads of Anthropic and Bedrock are
// not in it.
func (r *UsageReader) counted(u Usage, native, doubted bool) int {
	sum := u.Input + u.CacheWrites + u.Output
	switch {
	case !native:
		sum += u.CacheReads
	case r.total == 0:
		return 0
	}
	if doubted {
		return sum
	}
	return max(r.total, sum)
}

// figures are the fields of a usage object.
type figures map[string]json.RawMessage

// part returns an object in it; nil for none.
func (f figures) part(name string) (inner figures) {
	_ = json.Unmarshal(f[name], &inner) // nil if it is none
	return inner
}

// most returns the largest of some fields; 0 for one that is missing or no number. possible is false if one is an impossible number.
func (f figures) most(names ...string) (n int, possible bool) {
	possible = true
	for _, name := range names {
		count, ok := tokenCount(unquote(string(f[name])))
		n, possible = max(n, count), possible && ok
	}
	return n, possible
}

// tokenCount returns a number of tokens, rounded up; 0 for none. possible is false for a number that is none of tokens.
func tokenCount(text string) (n int, possible bool) {
	const most = 1_000_000_000
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err == nil && f >= 0 && f <= most:
		return int(math.Ceil(f)), true
	case err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f):
		return 0, true
	}
	return 0, false
}
