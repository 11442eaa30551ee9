package account

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// A Price is the price of a model's calls: of a million tokens of each kind, and of a call. An empty price is that of Input; an empty
// CacheWrite1h is that of CacheWrite, and an empty PerCall is nothing. Each has at most 6 decimals.
type Price struct {
	Input        json.Number `json:"input,omitempty"`
	Output       json.Number `json:"output,omitempty"`
	CachedInput  json.Number `json:"cachedInput,omitempty"`
	CacheWrite   json.Number `json:"cacheWrite,omitempty"`
	CacheWrite1h json.Number `json:"cacheWrite1h,omitempty"`
	PerCall      json.Number `json:"perCall,omitempty"`
}

// Millionths is how many of the unit of money are one of the currency.
const Millionths = 1_000_000

// A money is an exact sum: millionths of the currency, and millionths of such a one.
type money struct{ whole, rest int64 }

// of adds the price of so many tokens, at a price for a million, or of so many million calls.
func (m *money) of(tokens, price int64) {
	m.add(money{tokens * (price / Millionths), 0}) // a price for a million tokens is as many millionths for one
	rest := tokens * (price % Millionths)
	m.add(money{rest / Millionths, rest % Millionths})
}

func (m *money) add(n money) {
	m.whole += n.whole
	m.rest += n.rest
	m.whole += m.rest / Millionths
	m.rest %= Millionths
}

// up returns the sum in millionths, rounded up.
func (m *money) up() int64 {
	if m.rest > 0 {
		return m.whole + 1
	}
	return m.whole
}

// rates are the prices in millionths, with those that are missing filled in.
type rates struct{ input, output, read, write, write1h, call int64 }

func (p Price) rates() rates {
	or := func(n json.Number, other int64) int64 {
		if n == "" {
			return other
		}
		return parse(n)
	}
	r := rates{input: or(p.Input, 0), call: or(p.PerCall, 0)}
	r.output, r.read, r.write = or(p.Output, r.input), or(p.CachedInput, r.input), or(p.CacheWrite, r.input)
	r.write1h = or(p.CacheWrite1h, r.write)
	return r
}

// parse returns a valid price in millionths.
func parse(n json.Number) int64 {
	whole, decimals, _ := strings.Cut(string(n), ".")
	const most = 6
	v, _ := strconv.ParseInt(whole+(decimals + "000000")[:most], 10, 64)
	return v
}

// cost returns the exact cost of a call by its usage.
func (r rates) cost(u usage.Usage) (m money) {
	m.of(int64(u.Input), r.input)
	m.of(int64(u.Output), r.output)
	m.of(int64(u.CacheReads), r.read)
	m.of(int64(u.CacheWrites-u.CacheWrites1h), r.write)
	m.of(int64(u.CacheWrites1h), r.write1h)
	m.add(money{r.call, 0})
	return m
}

// most returns the most that a call can cost, by the estimate: its prompt is written to a cache, at worst.
func (r rates) most(e profile.Estimate) (m money) {
	m.of(e.Prompt, max(r.input, r.write, r.write1h))
	m.of(e.Longest, r.output)
	m.add(money{r.call, 0})
	return m
}
