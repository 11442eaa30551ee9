package httpproxy

import (
	"fmt"
	"net/http"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// costLLM is the cost rule for LLMs, which package account counts.
const costLLM = "llm"

// isLLM reports whether requests cost what LLMs count: they do so with a limit that only LLMs have, or if nothing but a provider and limits on
// requests and calls in flight is set.
func (c *Config) isLLM() bool {
	switch {
	case c.Cost != "":
		return c.Cost == costLLM
	case c.LLM.Limited():
		return true
	}
	named := c.Provider != "" && c.Provider != profile.Generic && c.Provider != profile.SelfHosted
	return named && c.Limits.Pool.Limit == (throttle.Limit{}) && c.Limits.RequestsPerMinute+c.Limits.InFlight > 0 && c.Settle == ""
}

// account returns the configuration of the account.
func (c *Config) account() account.Config {
	of := c.LLM
	of.Provider, of.Pool, of.Quotas, of.QuotasOf = c.Provider, c.Limits.Pool, c.Limits.Pool.Quotas, c.Limits.QuotasOf
	of.RequestsPerMinute, of.InFlight = c.Limits.RequestsPerMinute, c.Limits.InFlight
	of.Limiter, of.Main = c.Limiter, c.Limiter != nil || c.Limits.Pool.Limit != (throttle.Limit{})
	return of
}

// CheckedPool returns the pool whose limit has the quotas.
func (c *Config) CheckedPool() numathrottle.Config {
	pool := c.Limits.Pool
	if of := c.account(); c.isLLM() && pool.Quotas.Given() && !of.Main {
		pool.Limit = of.QuotaLimit()
	}
	return pool
}

// llmFault returns the response to a request to an LLM that cannot be measured; nil: it can be, so far.
func llmFault(r *prompt.Reader, s *costrule.Scanner) *unreadableError {
	switch name := r.Unreadable(); {
	case s.Broken():
		return &unreadableError{costLLM, notJSON("cost", costLLM, "(no valid JSON, or too deep)")}
	case name != "":
		return &unreadableError{costLLM, proxy.FieldError(fmt.Sprintf("%.40q", name), "a text with digits, or a very long one", costrule.AllowedNumber)}
	}
	return nil
}

// llmCall returns what a request counts for.
func llmCall(m *message) (*account.Call, error) {
	rest := int64(0)
	if !m.whole {
		rest = max(m.req.ContentLength-int64(len(m.body)), 0)
	}
	f := m.facts()
	if fault := llmFault(f.prompt, &f.scanner); fault != nil {
		return nil, fault
	}
	size := f.prompt.Size(rest)
	return &account.Call{Size: size, Model: account.ModelOf(m.req.URL, size)}, nil
}

// reportedCost returns the cost that the head of an answer states.
func (p *handler) reportedCost(res *http.Response) (int, bool) {
	m, ok := p.meter(res).(reported)
	return int(m), ok
}

// llmOptions are the options of the transport under which an account's limits are.
func (p *handler) llmOptions() []httpthrottle.Option {
	opts := p.account.Options()
	switch {
	case p.Settle == settleUsage:
	case p.meter == nil:
		opts = append(opts, httpthrottle.WithMeter(nil))
	default:
		reported := p.account.Reported(p.reportedCost) //nolint:bodyclose // it is handed a response, and makes none
		opts = append(opts, httpthrottle.WithMeter(reported))
	}
	return opts
}
