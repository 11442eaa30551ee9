package ceiling

import (
	"math"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
)

// A Single is how much of a limit one tag may use at one process after refusals, by the law of package backoff. It falls and rises as a
// Part does, by the tag's own calls. It falls from the tag's use, not from the limit, which may be far higher. Times are in microseconds of
// one clock, rates in tokens per second. The zero Single is free: the tag is not limited. It is not safe for concurrent use.
type Single struct {
	Part

	base float64 // the tag's use at its first cut
}

// singleLeast is the part of its use that a tag always keeps; otherwise nobody would learn that it can have more.
const singleLeast = 0.01

// A SingleConfig is the reference of a Single.
type SingleConfig struct {
	// Limit is the configured limit. Its Per counts in microseconds.
	Limit Rate
	// Reserved is the rate that is always allowed. At Most the tag is free: it could not use more anyway.
	Reserved, Most float64
}

// whole returns the limit in tokens per second.
func (c *SingleConfig) whole() float64 {
	return float64(c.Limit.Max) / backoffPer(c.Limit.Per).Seconds()
}

func (c *SingleConfig) law(base float64) backoff.Config {
	part := max(c.Reserved, base*singleLeast) / c.whole() * backoff.Whole
	return backoff.Config{Max: c.Limit.Max, Per: backoffPer(c.Limit.Per), Reserved: int64(max(1, min(part, backoff.Whole)))}
}

// Free reports whether the tag is not limited.
func (s *Single) Free() bool { return s.State.Free() }

// Rate returns how much the tag may use at a time; +Inf while it is free.
func (s *Single) Rate(c SingleConfig, now int64) float64 {
	if s.Free() {
		return math.Inf(1)
	}
	law := c.law(s.base)
	return law.Ceiling(s.State, now) / backoff.Whole * c.whole()
}

// Forget makes the tag free, because its bound no longer holds callers back.
func (s *Single) Forget() { s.State = backoff.State{Generation: s.State.Generation} }

// Refused returns the fraction of calls refused lately, from 0 to 1.
func (s *Single) Refused(c SingleConfig, now int64) float64 {
	r := s.Tally.Report(c.whole(), s.State.Generation, now)
	refused := float64(r.Refused + r.Overloaded)
	return refused / max(refused+float64(r.Accepted), 1)
}

// Refuse takes a step after a refusal, and reports whether the tag was cut: calls granted before no longer count. A free tag is limited
// from then on.
func (s *Single) Refuse(c SingleConfig, now int64) (cut bool) {
	was := s.State
	if s.Free() {
		r := s.Tally.Report(c.whole(), was.Generation, now)
		present := min(max(r.Accepted+r.Refused+r.Overloaded, 1), backoff.Whole)
		s.base = float64(present) / backoff.Whole * c.whole()
		s.State = backoff.State{
			At: now, Cut: now, From: now, Low: present, Good: present, Max: c.Limit.Max, Per: backoffPer(c.Limit.Per).Microseconds(),
			Generation: was.Generation,
		}
	}
	if cut = s.step(c, now, true); !cut && was.Free() {
		s.State = was
	}
	return cut
}

// Step advances to a time. pressed reports whether the tag's callers lacked tokens since the last step because of its bound: otherwise
// there is no evidence, and it does not rise.
func (s *Single) Step(c SingleConfig, now int64, pressed bool) {
	if !s.Free() {
		s.step(c, now, pressed)
	}
}

func (s *Single) step(c SingleConfig, now int64, pressed bool) (cut bool) {
	used := int64(0)
	if pressed {
		used = 1
	}
	law := c.law(s.base)
	cut = s.Part.Step(law, now, c.whole(), used, used)
	if !cut && !s.Free() && law.Ceiling(s.State, now)/backoff.Whole*c.whole() >= c.Most {
		s.Forget()
	}
	return cut
}
