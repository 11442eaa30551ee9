package ceiling

import (
	"math"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
)

// A Single is what one tag may use of a limit at one process after refusals, by the law of package backoff: it falls and
// rises as a Part does, and by nobody else's calls. It falls from what the tag uses, and not from the limit, which it may
// be far below. Times are in microseconds of one clock, rates in tokens per second. The zero Single is free: nothing
// holds the tag. It is not safe for concurrent use.
type Single struct {
	Part

	base float64 // what the tag used when it was cut first
}

// singleLeast is the part of what a tag used that is always left of it, or nobody would learn that it can have more.
const singleLeast = 0.01

// A SingleConfig is what a Single is measured by.
type SingleConfig struct {
	// Limit is the configured limit. Its Per counts in microseconds.
	Limit Rate
	// Reserved is what is always allowed. At Most the tag is free: it could not have more anyway.
	Reserved, Most float64
}

// whole is the limit in tokens per second.
func (c *SingleConfig) whole() float64 {
	return float64(c.Limit.Max) / backoffPer(c.Limit.Per).Seconds()
}

func (c *SingleConfig) law(base float64) backoff.Config {
	part := max(c.Reserved, base*singleLeast) / c.whole() * backoff.Whole
	return backoff.Config{Max: c.Limit.Max, Per: backoffPer(c.Limit.Per), Reserved: int64(max(1, min(part, backoff.Whole)))}
}

// Free tells whether nothing holds the tag.
func (s *Single) Free() bool { return s.State.Free() }

// Rate is what the tag may use at a time; +Inf while it is free.
func (s *Single) Rate(c SingleConfig, now int64) float64 {
	if s.Free() {
		return math.Inf(1)
	}
	law := c.law(s.base)
	return law.Ceiling(s.State, now) / backoff.Whole * c.whole()
}

// Forget makes the tag free: what it may use holds nobody back any more.
func (s *Single) Forget() { s.State = backoff.State{Generation: s.State.Generation} }

// Refused is which part of the calls was refused lately, from 0 to 1.
func (s *Single) Refused(c SingleConfig, now int64) float64 {
	r := s.Tally.Report(c.whole(), s.State.Generation, now)
	refused := float64(r.Refused + r.Overloaded)
	return refused / max(refused+float64(r.Accepted), 1)
}

// Refuse makes a step after a refusal, and tells whether the tag was cut: calls that were granted before do not count any
// more. A tag that was free is held from then on.
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

// Step goes on to a time. pressed tells whether the tag's callers lacked tokens since the last step because of what it may
// use: else nothing is learnt, and it does not rise.
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
