package fakellm

import (
	"slices"
	"time"
)

// A guard is a limit with its bucket.
type guard struct {
	limit  Limit
	amount int
	bucket bucket
}

// newGuards returns the limits of a valid Config, per minute before those per day.
func newGuards(c Config, now time.Time) (guards []*guard) {
	for _, l := range allLimits {
		g := &guard{limit: l, amount: c.amount(l)}
		switch {
		case g.amount == 0:
			continue
		case l != RequestsDay && l != TokensDay:
			g.bucket = newBucket(g.amount, time.Minute, c.Slice, now)
		case c.DayZone != "":
			zone, err := time.LoadLocation(c.DayZone)
			if err != nil {
				zone = time.UTC // the Config was checked
			}
			g.bucket = newDailyBucket(g.amount, zone, now)
		default:
			g.bucket = newBucket(g.amount, 24*time.Hour, c.DaySlice, now)
		}
		guards = append(guards, g)
	}
	return guards
}

// A refusal is the reason for refusing a call, and when it would be accepted.
type refusal struct {
	why          Limit
	after        time.Duration
	never        bool
	limit, asked int
}

// admit charges a call, or returns its refusal. tell gets the state of the limits for either.
func (s *Server) admit(charged Amounts, tell func(now time.Time)) (refusal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now() // under the lock, so that the times of the log rise
	s.advance(now)
	refused := s.judge(charged)
	if refused.why == "" {
		s.charge(now, charged)
		s.inFlight++
		s.stats.Served++
		s.stats.MostInFlight = max(s.stats.MostInFlight, s.inFlight)
	} else {
		*refusals(&s.stats, refused.why)++
		for _, g := range s.guards {
			if profiles[s.config.Provider].refusedCount && (g.limit == Requests || g.limit == RequestsDay) {
				g.bucket.punish(float64(charged.Requests))
			}
		}
	}
	tell(now)
	return refused, refused.why == ""
}

// advance gives all buckets their earnings. s.mu is held.
func (s *Server) advance(now time.Time) {
	for _, g := range s.guards {
		g.bucket.advance(now)
	}
}

// judge returns the refusal of a call; zero if it is served. s.mu is held.
func (s *Server) judge(charged Amounts) refusal {
	switch {
	case s.config.Quota > 0 && s.stats.Used >= s.config.Quota:
		return refusal{why: Quota}
	case s.config.InFlight > 0 && s.inFlight >= s.config.InFlight:
		return refusal{why: Overload}
	}
	for _, g := range s.guards {
		asked := charged.Of(g.limit)
		if g.limit == OutputTokens {
			asked = max(asked, 1) // none of it is known yet
		}
		if !g.bucket.has(float64(asked)) {
			after, ok := g.bucket.wait(float64(asked))
			return refusal{why: g.limit, after: after, never: !ok, limit: g.amount, asked: asked}
		}
	}
	return refusal{}
}

// charge charges all limits, or corrects them. s.mu is held.
func (s *Server) charge(now time.Time, a Amounts) {
	for _, g := range s.guards {
		g.bucket.take(float64(a.Of(g.limit)))
	}
	s.stats.Charged = s.stats.Charged.plus(a)
	s.charges = append(s.charges, Charge{At: now, Requests: a.Requests, Tokens: a.Tokens, Input: a.Input, Output: a.Output})
}

// end books the end of a call with a key, and returns its usage. If the limit on output stops the call, its output is shorter.
func (s *Server) end(key string, arrived Amounts, used Usage, served bool) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.advance(now)
	s.inFlight--
	if !served {
		s.stats.Abandoned++
		used.Output, used.Reasoning = 0, 0
	}
	if left, ok := s.outputLeft(); ok && left < used.Output {
		s.stats.Stopped++
		used.Output = left
		used.Reasoning = min(used.Reasoning, left)
	}
	s.stats.Used += used.Total()
	s.accounts[key] = account{s.accounts[key].calls + 1, s.accounts[key].used.plus(used)}
	s.stats.Usage = s.stats.Usage.plus(used)
	s.stats.Millionths = rounded(s.config.Prices.Cost(s.stats.Served-s.inFlight, s.stats.Usage))
	if correction := s.config.inTheEnd(arrived, used).minus(arrived); profiles[s.config.Provider].settle != nil {
		s.charge(now, correction)
	}
	return used
}

// outputLeft returns how long an answer may still be; false if nothing stops it. s.mu is held.
func (s *Server) outputLeft() (int, bool) {
	if !profiles[s.config.Provider].stopsAtOutput {
		return 0, false
	}
	i := slices.IndexFunc(s.guards, func(g *guard) bool { return g.limit == OutputTokens })
	if i < 0 {
		return 0, false
	}
	return s.guards[i].bucket.remaining(), true
}
