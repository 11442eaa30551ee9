package fakellm

import (
	"encoding/json"
	"fmt"
	"math/big"
)

// Prices are what a million tokens of each kind cost, and what a call costs on top, in decimals. One that is missing costs as much as Input,
// PerCall nothing, and CacheWrite1h as much as CacheWrite. The JSON form is that of a model's prices in llm-map.
type Prices struct {
	Input        json.Number `json:"input,omitempty"`
	Output       json.Number `json:"output,omitempty"`
	CachedInput  json.Number `json:"cachedInput,omitempty"`
	CacheWrite   json.Number `json:"cacheWrite,omitempty"`
	CacheWrite1h json.Number `json:"cacheWrite1h,omitempty"`
	PerCall      json.Number `json:"perCall,omitempty"`
}

// ParsePrices parses the JSON form.
func ParsePrices(text string) (p Prices, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("fakellm: prices are %.200q, allowed: a JSON object of numbers: %w", text, err)
	}
	return p, nil
}

// decimal returns a number, or the fallback if there is none.
func decimal(n json.Number, fallback *big.Rat) *big.Rat {
	if r, ok := new(big.Rat).SetString(string(n)); ok {
		return r
	}
	return fallback
}

// Cost returns what so many calls with a usage in all cost, in millionths of the currency, exactly.
func (p Prices) Cost(calls int, u Usage) *big.Rat {
	input := decimal(p.Input, new(big.Rat))
	write := decimal(p.CacheWrite, input)
	sum := new(big.Rat)
	for _, part := range []struct {
		n     int
		price *big.Rat
	}{
		{u.Input, input},
		{u.Output, decimal(p.Output, input)},
		{u.CacheRead, decimal(p.CachedInput, input)},
		{u.CacheWrite - u.CacheWrite1h, write},
		{u.CacheWrite1h, decimal(p.CacheWrite1h, write)},
		{calls * 1_000_000, decimal(p.PerCall, new(big.Rat))},
	} {
		sum.Add(sum, new(big.Rat).Mul(new(big.Rat).SetInt64(int64(part.n)), part.price))
	}
	return sum
}

// rounded returns the nearest whole number.
func rounded(r *big.Rat) int64 {
	n, _ := new(big.Rat).SetString(r.FloatString(0))
	return n.Num().Int64()
}
