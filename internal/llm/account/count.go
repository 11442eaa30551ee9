package account

import (
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// mostAnswer is how long an answer can be, in tokens, if its request does not say: as long as models write.
const mostAnswer = 262_144

// estimate describes a call before it is made, for a limit of a rule. It stays the same for a call, so that a side that its usage lacks counts
// as drawn.
func (l *Limits) estimate(c *Call, r profile.Rule) profile.Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, made := c.estimates[r]
	if !made {
		if c.estimates == nil {
			c.estimates = map[profile.Rule]profile.Estimate{}
		}
		e = l.newEstimate(c.Size, r)
		c.estimates[r] = e
	}
	return e
}

func (l *Limits) newEstimate(s prompt.Size, r profile.Rule) profile.Estimate {
	e := profile.Estimate{Least: s.Least(), Answer: l.answers.Tokens(s), Longest: l.answers.Longest(s), Allowed: mostAnswer}
	if s.Answer > 0 {
		e.Allowed = s.Answer
	}
	switch {
	case l.profile.Chars:
		e.Prompt = s.ByChars()
	case r.Settle&profile.Reads == 0:
		e.Prompt = l.free.Tokens(s)
	default:
		e.Prompt = l.counted.Tokens(s)
	}
	return e
}

// counting returns the functions of a part.
func (l *Limits) counting(k profile.Kind) (amount func(*Limits, *Call) int, charge func(*Limits, *Call, usage.Usage) int) {
	switch k {
	case profile.Requests, profile.RequestsDay:
		return (*Limits).requests, nil
	case profile.InFlight:
		return one, nil
	case profile.Input:
		return byRule(l.profile.Input, 1)
	case profile.Output:
		return byRule(l.profile.Output, 1)
	case "":
		return byTotal()
	default:
		return byRule(l.profile.Tokens, l.config.OutputWeight)
	}
}

func one(*Limits, *Call) int { return 1 }

// requests returns how many requests a call counts for.
func (l *Limits) requests(c *Call) int {
	if l.config.CountInputs || l.profile.PerInput {
		return int(max(c.Size.Inputs, 1))
	}
	return 1
}

// byRule counts by a rule of the profile.
func byRule(r profile.Rule, weight int) (func(*Limits, *Call) int, func(*Limits, *Call, usage.Usage) int) {
	amount := func(l *Limits, c *Call) int { return r.Drawn(l.estimate(c, r)) }
	if !r.Settles() {
		return amount, nil
	}
	return amount, func(l *Limits, c *Call, u usage.Usage) int { return r.Charged(l.estimate(c, r), u, weight) }
}

// byTotal counts prompts and answers, by usage. The cache reads of Anthropic and Amazon Bedrock do not count.
func byTotal() (func(*Limits, *Call) int, func(*Limits, *Call, usage.Usage) int) {
	r := profile.Of(profile.SelfHosted).Tokens
	amount, charge := byRule(r, 1)
	return amount, func(l *Limits, c *Call, u usage.Usage) int {
		n := charge(l, c, u)
		if u.HasInput && u.HasOutput {
			n = min(n, max(u.Tokens(), int(c.Size.Least())))
		}
		return n
	}
}

// learn takes what a whole answer teaches.
func (l *Limits) learn(c *Call, u usage.Usage) {
	if u.HasInput {
		free := profile.Rule{Settle: profile.Uncached | profile.Writes}
		counted := profile.Rule{Settle: profile.AllInput}
		l.free.Learn(c.Size, free.ChargedPrompt(profile.Estimate{}, u))
		l.counted.Learn(c.Size, counted.ChargedPrompt(profile.Estimate{}, u))
	}
	if u.HasOutput {
		l.answers.Learn(int64(u.Output))
	}
}

// drawn returns what a part draws for a call: never more than it can ever grant because of an answer that is only expected.
func (l *limiter) drawn(p *part, c *Call) int {
	n, most := p.amount(l.Limits, c), int(tightest(int64(p.max), int64(l.mostOf(p.quotas))))
	if most == 0 || n <= most {
		return n
	}
	return min(n, max(most, p.amount(l.Limits, c.least(p.kind))))
}

// least returns the call with the shortest answer, if its request has no bound or a limit of the kind draws an expected length in any case.
func (c *Call) least(k profile.Kind) *Call {
	least := &Call{Size: c.Size, Model: c.Model}
	if least.Size.Answer == 0 || k == profile.Output {
		least.Size.Answer = 1
	}
	return least
}

// Prompt returns the estimate of a call's prompt, in tokens.
func (l *Limits) Prompt(c *Call) int { return int(l.estimate(c, l.profile.Tokens).Prompt) }

// Text returns how many tokens a text has, by what whole answers have taught, whichever way the provider counts it.
func (l *Limits) Text(text string) int {
	return int(l.counted.Tokens(prompt.Size{Bytes: int64(len(text))}))
}

// TooLarge returns the setting of a limit that never grants what a call draws, with the draw and the most that it grants; an empty one if all
// do. An answer that the request does not bound counts as one token: a learned length must not decide about errors.
func (l *Limits) TooLarge(c *Call) (setting string, tokens, most int) {
	for i := range l.parts {
		p := &l.parts[i]
		if n := p.amount(l, c.least(p.kind)); p.max > 0 && n > p.max {
			return p.key, n, p.max
		}
	}
	return "", 0, 0
}
