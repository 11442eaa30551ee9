package fakellm

import (
	"slices"
	"time"
)

// Stats are the statistics of a Server.
type Stats struct {
	// Served counts the charged calls; Abandoned those whose caller went away before the answer.
	Served, Abandoned int
	// RefusedRequests and RefusedTokens count the calls that came too early for a
	// limit, RefusedOverload those above InFlight, RefusedQuota those above Quota.
	RefusedRequests, RefusedTokens, RefusedOverload, RefusedQuota int
	// InFlight counts the current calls, and MostInFlight is its maximum.
	InFlight, MostInFlight int
	// Used is the real usage of all calls that have ended, in tokens.
	Used int
}

// Refused returns the number of refused calls, for any reason.
func (s Stats) Refused() int {
	return s.RefusedRequests + s.RefusedTokens + s.RefusedOverload + s.RefusedQuota
}

// countRefusal counts a call that is refused. s.mu is held.
func (s *Server) countRefusal(w why) {
	switch w {
	case whyRequests:
		s.stats.RefusedRequests++
	case whyTokens:
		s.stats.RefusedTokens++
	case whyOverload:
		s.stats.RefusedOverload++
	case whyQuota:
		s.stats.RefusedQuota++
	}
}

// A Charge is a charge against the limits at one moment of the server's clock. A correction to the real usage has no request, and usually
// negative tokens.
type Charge struct {
	At               time.Time
	Requests, Tokens int
}

// Stats returns the statistics.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.InFlight = s.inFlight
	return st
}

// Charges returns all charges, in the order of time.
func (s *Server) Charges() []Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.charges)
}

// Sum adds up the charges from one moment on and before another.
func Sum(charges []Charge, from, to time.Time) (requests, tokens int) {
	for _, c := range charges {
		if !c.At.Before(from) && c.At.Before(to) {
			requests += c.Requests
			tokens += c.Tokens
		}
	}
	return requests, tokens
}

// Worst is the most requests, and the most tokens, that were charged in any window of
// length d (half open). charges are in the order of time.
func Worst(charges []Charge, d time.Duration) (requests, tokens int) {
	var first, sumRequests, sumTokens int
	for _, c := range charges {
		for c.At.Sub(charges[first].At) >= d {
			sumRequests -= charges[first].Requests
			sumTokens -= charges[first].Tokens
			first++
		}
		sumRequests += c.Requests
		sumTokens += c.Tokens
		requests, tokens = max(requests, sumRequests), max(tokens, sumTokens)
	}
	return requests, tokens
}
