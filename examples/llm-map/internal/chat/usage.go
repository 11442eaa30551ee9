package chat

import "encoding/json"

// A Usage is the cost of a call according to the provider, in tokens: the prompt with what came from a cache and went into it, and the answer
// with what was thought.
type Usage struct{ Prompt, Completion, Total int }

// counts adds a usage to those of the answer so far.
func (r *reading) counts(raw json.RawMessage) {
	r.usage.Add(raw)
	if u, ok := r.usage.Usage(); ok {
		prompt := u.Input + u.CacheWrites + u.CacheReads
		r.known.Usage = &Usage{Prompt: prompt, Completion: u.Output, Total: prompt + u.Output}
	}
}
