package usage

import "net/http"

// A Reader reads the usage of one answer of an LLM from its usage objects, in any dialect or mixture of dialects. Where several come, as in a
// stream, the largest of each figure counts, for they are sums. The zero Reader has read nothing. It is not safe for concurrent use.
type Reader struct {
	most  [allFigures]int
	has   figureSet // figures that have come
	wrong figureSet // figures that can't be: below 0, or more than is believed
}

// Add reads a usage object, such as the value of "usage". It returns false if it is no JSON object.
func (r *Reader) Add(object []byte) bool { return r.walk("", object) }

// AddHeader reads the headers in which Amazon Bedrock counts a call of InvokeModel.
func (r *Reader) AddHeader(h http.Header) {
	const prefix = "X-Amzn-Bedrock-"
	r.take(input, h.Get(prefix+"Input-Token-Count"))
	r.take(output, h.Get(prefix+"Output-Token-Count"))
	r.take(besideReads, h.Get(prefix+"Cache-Read-Input-Token-Count"))
	r.take(besideWrites, h.Get(prefix+"Cache-Write-Input-Token-Count"))
}

// Usage returns the usage, with what is known of it; false if no figure was above 0.
//
// Figures that contradict each other never lower the cost of certain use. More cached tokens than the prompt has stand beside it,
// and more reasoning than the output has stands beside that. What the total holds beyond the other figures is the side that was not reported,
// else output, such as thoughts. No total makes a side larger than can be believed.
//
// A figure that can't be leaves its side unknown, with what the others of that side tell.
func (r *Reader) Usage() (Usage, bool) {
	if r.has == 0 {
		return Usage{}, false
	}
	u, native := r.prompt()
	r.output(&u)
	r.conclude(&u, native)
	if u.Input+u.CacheWrites+u.CacheReads+u.Output == 0 {
		return Usage{}, false
	}
	return u, true
}

// prompt returns a usage with the prompt. native means that its caches are told beside it, as by Anthropic and Bedrock, and by no other dialect.
//
// Each dialect tells the whole prompt in its own way; the most counts, where a gateway mixes them.
func (r *Reader) prompt() (u Usage, native bool) {
	n := &r.most
	u.CacheReads = max(n[insideReads], n[inputReads], n[besideReads])
	u.CacheWrites = max(n[insideWrites], n[inputWrites], n[besideWrites], n[writes5m]+n[writes1h])
	u.CacheWrites1h = n[writes1h]
	cached := u.CacheReads + u.CacheWrites
	named := max(n[insideReads], n[insideWrites], n[inputReads], n[inputWrites]) == 0 // only as Anthropic and Bedrock name them
	beside := max(n[inputReads], n[inputWrites]) == 0 && max(n[besideReads], n[besideWrites], n[writes5m], n[writes1h]) > 0

	own := n[input]
	if !r.has.any(input) {
		own = n[billedInput]
	}
	whole := max(n[chatPrompt], n[geminiPrompt]+n[tools])
	if n[missed] > 0 {
		whole = max(whole, n[missed]+n[insideReads])
	}
	native = beside && whole < own+cached && (own > 0 || named && whole == 0)
	switch {
	case own > 0 && beside:
		whole = max(whole, own+cached)
	default:
		whole = max(whole, own)
		if cached > whole || named && n[total] >= whole+cached+n[output] {
			whole += cached
		}
	}
	u.HasInput = whole > 0 && !r.wrong.prompt() && whole <= mostPrompt &&
		(r.has.any(chatPrompt, geminiPrompt, input, billedInput) || r.has.any(missed) && r.has.any(insideReads))
	if whole > mostPrompt { // the figures contradict each other: what is sure is the longest prompt
		u.CacheReads, u.CacheWrites, cached = 0, 0, 0
		whole = min(max(own, n[chatPrompt], n[geminiPrompt]+n[tools]), mostPrompt)
	}
	u.CacheWrites1h = min(u.CacheWrites1h, u.CacheWrites)
	u.Input = whole - cached
	return u, native
}

// output adds the answer to a usage.
func (r *Reader) output(u *Usage) {
	n := &r.most
	own := n[output]
	if !r.has.any(output) {
		own = n[billedOutput]
	}
	u.Output = max(own, n[geminiOutput]+n[thoughts])
	if n[reasoning] > own {
		u.Output = max(u.Output, own+n[reasoning])
	}
	u.HasOutput = r.has.any(output, billedOutput, geminiOutput) && !r.wrong.answer() && u.Output <= mostOutput
	u.Output = min(u.Output, mostOutput)
}

// conclude adds to a usage what the total tells.
//
// The cache reads of Anthropic and Bedrock are not surely in their totals.
func (r *Reader) conclude(u *Usage, native bool) {
	told := u.Input + u.CacheWrites + u.CacheReads + u.Output
	rest := r.most[total] - told
	side, most := &u.Output, mostOutput
	if !u.HasInput {
		side, most = &u.Input, mostPrompt-u.CacheWrites-u.CacheReads
	}
	believed := *side+max(rest, 0) <= most || told == 0 && !u.HasOutput // a total alone
	if believed && rest >= 0 {
		*side += rest
		if !native && !r.wrong.prompt() && !r.wrong.answer() {
			u.HasInput = u.HasInput || u.HasOutput && u.Input > 0
			u.HasOutput = u.HasOutput || u.HasInput
		}
		u.HasTotal = r.wrong == 0 && (!native || u.HasInput && u.HasOutput)
	}
	u.Total = u.Input + u.CacheWrites + u.Output
	switch {
	case !native:
		u.Total += u.CacheReads
	case r.most[total] == 0:
		u.Total = 0
	}
	if believed {
		u.Total = max(u.Total, r.most[total])
	}
}
