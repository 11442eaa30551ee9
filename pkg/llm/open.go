package llm

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// Limits are the open limits of an account. All methods may be called from any number of goroutines at once.
type Limits struct {
	account *account.Limits
	purse   *account.Purse
}

// Open joins the pools of the limits. ctx bounds only the opening. Errors: one with a line for each fault of c, and those of
// numathrottle.Open. None shows a secret. Close the Limits after the last call.
func Open(ctx context.Context, c Config) (*Limits, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	of, prices, budget := c.parts()
	log := cmp.Or(c.Base.Logger, slog.Default())
	l := &Limits{}
	var err error
	if l.purse, err = account.OpenPurse(ctx, of.Pool, prices, budget, of.BudgetQuotas(), false, log); err != nil {
		return nil, err
	}
	of.Purse = l.purse
	if l.account, err = account.Open(ctx, of, log); err != nil {
		return nil, errors.Join(err, l.purse.Close())
	}
	return l, nil
}

// Validate returns an error with a line for each fault of c, or nil. It checks only the values: [Open] finds out whether the store can be
// reached.
func (c Config) Validate() error {
	of, prices, budget := c.parts()
	faults := slices.Concat(of.Check(), account.CheckMoney(prices, budget, of.BudgetQuotas(), true))
	if len(faults) == 0 {
		faults = of.CheckPools(budget)
	}
	if c.Quotas.Given() && of.QuotaLimit().Max == 0 {
		faults = append(faults, &config.FieldError{
			Field: "quotas", Problem: "are set, but there is no limit that they are parts of", Allowed: "with a limit per minute",
		})
	}
	return config.Join(faults)
}

// parts returns the settings as package account has them.
func (c Config) parts() (of account.Config, prices map[string]account.Price, b account.Budget) {
	of = account.Config{
		Provider: profile.Name(c.Provider), RequestsPerMinute: c.RequestsPerMinute, InputTokensPerMinute: c.InputTokensPerMinute,
		OutputTokensPerMinute: c.OutputTokensPerMinute, TokensPerMinute: c.TokensPerMinute, InFlight: c.InFlight,
		Announced: c.Announced, RequestsPerDay: c.RequestsPerDay.of(), TokensPerDay: c.TokensPerDay.of(),
		Charge: profile.Charge(c.Charge), CachedInput: profile.CachedInput(c.CachedInput), OutputWeight: c.OutputWeight, CountInputs: c.CountInputs,
		OutputTokens: c.OutputTokens, Quotas: c.Quotas, Tag: c.Tag, Pool: c.Base, AnyType: true, // the callers are of this program, which trusts them
		Media: prompt.Media{ImageTokens: c.ImageTokens, AudioBytesPerToken: c.AudioBytesPerToken, FileBytesPerToken: c.FileBytesPerToken},
	}
	of.QuotasOf.Limits = c.QuotasOf
	of.Pool.Store, of.Pool.Pool = cmp.Or(c.Store, of.Pool.Store), cmp.Or(c.Pool, of.Pool.Pool)
	of.Pool.ID, of.Pool.HealthAddr = cmp.Or(c.ID, of.Pool.ID), cmp.Or(c.HealthAddr, of.Pool.HealthAddr)
	prices = map[string]account.Price{}
	for model, p := range c.Prices {
		prices[model] = account.Price(p)
	}
	return of, prices, account.Budget(c.Budget)
}

func (d Day) of() account.Day {
	return account.Day{Amount: d.Amount, Reset: account.Reset(d.Reset), Zone: d.Zone, Burst: d.Burst}
}

// Transport returns a transport that draws for each request from all limits, and sends it through base; nil is a base of its own, which
// notices dead connections. It waits and tries again as package httpthrottle says. The body of every answer must be read to its end, or
// closed: the call is settled then.
func (l *Limits) Transport(base http.RoundTripper) http.RoundTripper {
	return l.account.Transport(base)
}

// Close leaves the pools. It is called once, after the last call has ended.
func (l *Limits) Close() error { return errors.Join(l.account.Close(), l.purse.Close()) }

// A Usage is the cost of a call according to the answer of an LLM, in tokens.
type Usage = usage.Usage

// Meter returns a function for httpthrottle.WithMeter that settles calls by the usage in their answers, for limits of one's own. tokens returns
// the cost of a usage; nil is Usage.Tokens. Only the usage of a whole answer settles for less than was drawn.
func Meter(tokens func(Usage) int) func(*http.Response) httpthrottle.Meter {
	return func(res *http.Response) httpthrottle.Meter { return usage.NewMeter(res, tokens) }
}
