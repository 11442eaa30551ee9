package fakellm

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
)

// A Usage is what a call used, in tokens. No token is in two of the first four.
type Usage struct {
	// Input is neither from a cache nor put into one.
	Input      int `json:"input"`
	CacheWrite int `json:"cache_write"`
	CacheRead  int `json:"cache_read"`
	Output     int `json:"output"`
	// CacheWrite1h is the part of CacheWrite that is kept for an hour.
	CacheWrite1h int `json:"cache_write_1h"`
	// Reasoning is a part of Output, and ToolUse of Input.
	Reasoning int `json:"reasoning"`
	ToolUse   int `json:"tool_use"`
}

// Prompt returns all input.
func (u Usage) Prompt() int { return u.Input + u.CacheWrite + u.CacheRead }

// Total returns the sum.
func (u Usage) Total() int { return u.Prompt() + u.Output }

func (u Usage) plus(v Usage) Usage {
	return Usage{
		u.Input + v.Input, u.CacheWrite + v.CacheWrite, u.CacheRead + v.CacheRead, u.Output + v.Output,
		u.CacheWrite1h + v.CacheWrite1h, u.Reasoning + v.Reasoning, u.ToolUse + v.ToolUse,
	}
}

// The headers of a call that make its usage known beforehand: the cached share of its prompt, or all of the usage as the JSON of Usage.
const (
	CachedHeader = "Fakellm-Cached"
	UsageHeader  = "Fakellm-Usage"
)

// A foresight is what the server knows of a call at arrival: what it will use, and what its estimate of the prompt is.
type foresight struct{ estimate, used Usage }

// foresee returns the usage of a call: always the same for a prompt and a seed.
func (c Config) foresee(call *call, h http.Header) foresight {
	var given Usage
	if text := h.Get(UsageHeader); text != "" && json.Unmarshal([]byte(text), &given) == nil {
		return foresight{estimate: given, used: given}
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(call.last()))
	random := rand.New(rand.NewPCG(c.Seed, hash.Sum64()))
	cached := c.CachedShare
	if share, err := strconv.ParseFloat(h.Get(CachedHeader), 64); err == nil && share >= 0 && share <= 1 {
		cached = share
	}
	mean := float64(call.bytes()) * c.TokensPerByte
	f := foresight{estimate: c.split(mean, cached, call.dialect), used: c.split(mean*(1+c.Spread*(2*random.Float64()-1)), cached, call.dialect)}
	if !call.dialect.embeds {
		f.used.Output = c.answerTokens(call.longest, random)
		f.used.Reasoning = int(c.ReasoningShare * float64(f.used.Output))
	}
	return f
}

// answerTokens returns the length of an answer, at most longest.
func (c Config) answerTokens(longest int, random *rand.Rand) int {
	least, most := c.AnswerLeast, c.AnswerMost
	if most == 0 {
		least, most = longest/8, longest-1
	}
	return max(1, min(longest, least+random.IntN(max(1, most-least+1))))
}

// split returns a prompt with its parts that are read from a cache and put into one.
func (c Config) split(tokens, cached float64, d *dialect) Usage {
	n := tokensOf(tokens)
	if d.embeds {
		return Usage{Input: n}
	}
	u := Usage{CacheRead: int(math.Round(cached * float64(n)))}
	if !d.noWrites {
		u.CacheWrite = min(int(math.Round(c.WriteShare*float64(n))), n-u.CacheRead)
	}
	if c.LongWrites {
		u.CacheWrite1h = u.CacheWrite
	}
	u.Input = n - u.CacheRead - u.CacheWrite
	return u
}

// tokensOf rounds up, but not what is a whole number but for the error of binary fractions.
func tokensOf(n float64) int { return max(1, int(math.Ceil(n-1e-6))) }

// figures returns what counts of a usage, or of an estimate with the longest answer as its output.
func (c Config) figures(u Usage, output int) figures {
	f := figures{counted: u.Input + u.CacheWrite, whole: u.Prompt(), output: output, weight: c.OutputWeight}
	switch {
	case c.CachedInput == Free:
		f.whole = f.counted
	case c.CachedInput == Counted, profiles[c.Provider].cachedCounts:
		f.counted = f.whole
	}
	return f
}

// atArrival returns the charge of a call at arrival.
func (c Config) atArrival(call *call, f foresight) Amounts {
	p := profiles[c.Provider]
	known := c.figures(f.estimate, call.longest*call.answers)
	if p.characters {
		known.counted = tokensOf(float64(call.characters()) / 4)
		known.whole = known.counted
	}
	if c.CacheMissedAtArrival {
		known.counted = f.estimate.Prompt()
		known.whole = known.counted
	}
	a := p.arrive(known)
	a.Requests = 1
	if call.dialect.embeds && (p.countsInputs || c.CountInputs) {
		a.Requests = len(call.inputs)
	}
	return a
}

// inTheEnd returns the charge of a call that used u, but for the requests.
func (c Config) inTheEnd(arrived Amounts, u Usage) Amounts {
	settle := profiles[c.Provider].settle
	if settle == nil {
		return arrived
	}
	return settle(c.figures(u, u.Output))
}
