package fakellm

import (
	"math/big"
	"slices"
	"time"
)

// Stats are the statistics of a Server.
type Stats struct {
	// Served counts the charged calls; Abandoned those whose caller went away before the answer, and Stopped the answers that ended where the
	// limit on output did.
	Served    int `json:"served"`
	Abandoned int `json:"abandoned"`
	Stopped   int `json:"stopped"`
	// RefusedOverload counts the calls above InFlight, and RefusedQuota those above Quota; the others those that came too early for a limit.
	RefusedRequests    int `json:"refused_requests"`
	RefusedInput       int `json:"refused_input"`
	RefusedOutput      int `json:"refused_output"`
	RefusedTokens      int `json:"refused_tokens"`
	RefusedRequestsDay int `json:"refused_requests_day"`
	RefusedTokensDay   int `json:"refused_tokens_day"`
	RefusedOverload    int `json:"refused_overload"`
	RefusedQuota       int `json:"refused_quota"`
	// InFlight counts the current calls, and MostInFlight is its maximum.
	InFlight     int `json:"in_flight"`
	MostInFlight int `json:"most_in_flight"`
	// Used is the real usage of all calls that have ended, in tokens, and Usage the same by kinds.
	Used  int   `json:"used"`
	Usage Usage `json:"usage"`
	// Charged is what all calls were charged, with corrections.
	Charged Amounts `json:"charged"`
	// Millionths is what the calls that have ended cost, rounded; Server.Cost is exact.
	Millionths int64 `json:"millionths"`
}

// Refused returns the number of refused calls, for any reason.
func (s Stats) Refused() (n int) {
	for _, l := range append([]Limit{Overload, Quota}, allLimits...) {
		n += *refusals(&s, l)
	}
	return n
}

// refusals is the count of calls that are refused for a reason.
func refusals(s *Stats, why Limit) *int {
	return map[Limit]*int{
		Requests: &s.RefusedRequests, InputTokens: &s.RefusedInput, OutputTokens: &s.RefusedOutput, Tokens: &s.RefusedTokens,
		RequestsDay: &s.RefusedRequestsDay, TokensDay: &s.RefusedTokensDay, Overload: &s.RefusedOverload, Quota: &s.RefusedQuota,
	}[why]
}

// A Charge is a charge against the limits at one moment of the server's clock. A correction to the real usage has no request, and usually
// negative tokens.
type Charge struct {
	At                              time.Time
	Requests, Tokens, Input, Output int
}

// Of returns the part that counts against a limit.
func (c Charge) Of(l Limit) int {
	return Amounts{Requests: c.Requests, Input: c.Input, Output: c.Output, Tokens: c.Tokens}.Of(l)
}

// Stats returns the statistics. GET /stats answers with their JSON.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.InFlight = s.inFlight
	return st
}

// Cost returns what the calls that have ended cost, in millionths of the prices' currency, exactly.
func (s *Server) Cost() *big.Rat {
	st := s.Stats()
	return s.config.Prices.Cost(st.Served-st.InFlight, st.Usage)
}

// An account is what the calls with a key have used.
type account struct {
	calls int
	used  Usage
}

// CostOf returns what the calls with a key that have ended cost, as Cost does.
func (s *Server) CostOf(key string) *big.Rat {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[key]
	return s.config.Prices.Cost(a.calls, a.used)
}

// Charges returns all charges, in the order of time.
func (s *Server) Charges() []Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.charges)
}

// Sum adds up the charges from one moment on and before another.
func Sum(charges []Charge, from, to time.Time) (requests, tokens int) {
	return SumOf(Requests, charges, from, to), SumOf(Tokens, charges, from, to)
}

// SumOf adds up the charges against a limit from one moment on and before another.
func SumOf(l Limit, charges []Charge, from, to time.Time) (sum int) {
	for _, c := range charges {
		if !c.At.Before(from) && c.At.Before(to) {
			sum += c.Of(l)
		}
	}
	return sum
}

// Worst is the most requests, and the most tokens, that were charged in any window of
// length d (half open). charges are in the order of time.
func Worst(charges []Charge, d time.Duration) (requests, tokens int) {
	return WorstOf(Requests, charges, d), WorstOf(Tokens, charges, d)
}

// WorstOf is the most that was charged against a limit in any window of length d (half open). charges are in the order of time.
func WorstOf(l Limit, charges []Charge, d time.Duration) (worst int) {
	var first, sum int
	for _, c := range charges {
		for c.At.Sub(charges[first].At) >= d {
			sum -= charges[first].Of(l)
			first++
		}
		sum += c.Of(l)
		worst = max(worst, sum)
	}
	return worst
}
