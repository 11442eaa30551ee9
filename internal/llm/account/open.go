package account

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/internal/llm/announce"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const limitPerDay = limit.PeriodDay

// unbounded is the limit of a quota's budget. It never binds.
var unbounded = throttle.Limit{Max: 1_000_000_000}

// Limits are the open limits of an account. All methods may be called from any number of goroutines at once.
type Limits struct {
	config  Config
	profile profile.Profile
	parts   []part
	static  throttle.Limiter // draws the same number from all parts but budgets; it shows their state
	// counted and free learn the tokens of a byte of a prompt, with and without cached input.
	counted, free prompt.Ratio
	answers       *prompt.Answers
	counters      counters
	watch         announce.Watch
	slow          slowdown
	spent         spentLog
	log           *slog.Logger
	closers       []func() error
}

// A part is one limit, with its way of counting.
type part struct {
	kind    profile.Kind
	key     string // its setting
	max     int    // the most that a call can be granted; 0: any number
	pool    string
	limiter throttle.Limiter
	quotas  throttle.Quotas
	// first is the first hour's worth of a limit that is refilled all day; nil for another.
	first *first
	// told is what the service announced.
	told *told
	// isBudget means that it is a budget of a calendar window.
	isBudget bool
	// amount returns a call's draw, and charge its count in the end; without charge that is the draw.
	amount func(l *Limits, c *Call) int
	charge func(l *Limits, c *Call, u usage.Usage) int
}

// Open joins the pools of an account. ctx bounds only the opening. Errors: those of numathrottle.Open; they show no secret. log is not nil.
func Open(ctx context.Context, c Config, log *slog.Logger) (l *Limits, err error) {
	c.OutputTokens = cmp.Or(c.OutputTokens, DefaultOutputTokens)
	c.OutputWeight = max(c.OutputWeight, 1)
	c.Pool.Logger = log
	// The pool's name may come from the environment, which numathrottle.Open reads.
	c.Pool.Pool = c.Pool.Effective().Pool
	c.Name = cmp.Or(c.Name, c.Pool.Pool)
	l = &Limits{config: c, profile: c.Profile(), answers: prompt.NewAnswers(c.OutputTokens), log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
			l = nil
		}
	}()
	if err := l.openLimits(ctx); err != nil {
		return l, err
	}
	if c.Purse != nil {
		l.parts = append(l.parts, c.Purse.part())
	}
	if err := l.openCounters(ctx); err != nil {
		return l, err
	}
	var all []throttle.Limiter
	for i := range l.parts {
		switch p := &l.parts[i]; {
		case p.isBudget:
		case p.kind == profile.Requests, p.kind == profile.RequestsDay, p.kind == profile.InFlight:
			all = append(all, throttle.PerCall(p.limiter))
		default:
			all = append(all, p.limiter)
		}
	}
	l.static = throttle.All(all...)
	for _, key := range c.idle() {
		log.Warn("the setting has no effect: no limit of this account counts by it", "setting", key)
	}
	for _, key := range c.Lacking() {
		log.Warn("the provider has no limit of this kind, as far as is known; it is kept all the same", "setting", key, "provider", string(c.Provider))
	}
	return l, nil
}

// DefaultOutputTokens is the default of Config.OutputTokens.
const DefaultOutputTokens = 1024

// in returns the configuration of the pool of a kind.
func (l *Limits) in(k profile.Kind, of throttle.Limit, quotas throttle.Quotas) numathrottle.Config {
	c := l.config.Pool
	c.Limit, c.Quotas = of, quotas
	if k != "" {
		c.Pool += "/" + string(k)
	}
	return c
}

// add opens the pool of a limit.
func (l *Limits) add(ctx context.Context, k profile.Kind, of throttle.Limit, quotas throttle.Quotas) error {
	c := l.in(k, of, quotas)
	th, err := numathrottle.Open(ctx, c)
	if err != nil {
		return err
	}
	p := part{kind: k, pool: c.Pool, limiter: th, told: &told{}, quotas: quotas}
	p.amount, p.charge = l.counting(k)
	l.parts, l.closers = append(l.parts, p), append(l.closers, th.Close)
	return nil
}

// openLimits opens all limits but that on money.
func (l *Limits) openLimits(ctx context.Context) error {
	if l.config.Limiter == nil {
		for _, open := range []func(context.Context) error{l.openMinutes, l.openDays, l.openSlots} {
			if err := open(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	p := part{kind: profile.Tokens, key: "tokensPerMinute", max: l.config.TokensPerMinute, pool: l.config.Pool.Pool, limiter: l.config.Limiter}
	if l.config.Main {
		p.kind, p.max = "", 0
	}
	p.amount, p.charge = l.counting(p.kind)
	l.parts = append(l.parts, p)
	return nil
}

// openMinutes opens the limits of a minute. The first has the quotas that name no limit.
func (l *Limits) openMinutes(ctx context.Context) error {
	if l.config.Main {
		if err := l.add(ctx, "", l.config.Pool.Limit, l.config.Quotas); err != nil {
			return err
		}
	}
	for i, s := range l.config.perMinute() {
		isMain := i == 0 && !l.config.Main
		if err := l.add(ctx, s.kind, l.config.shaped(s, isMain), l.config.quotasOf(s.key, isMain)); err != nil {
			return err
		}
		p := &l.parts[len(l.parts)-1]
		p.key, p.max = s.key, s.max
	}
	return nil
}

func (l *Limits) openDays(ctx context.Context) error {
	for _, s := range l.config.days() {
		of := l.config.RequestsPerDay
		if s.kind == profile.TokensDay {
			of = l.config.TokensPerDay
		}
		limit, quotas := of.limit()
		if of.Reset != Midnight {
			limit = l.config.follow(limit, s.kind, true)
		}
		if err := l.add(ctx, s.kind, limit, quotas); err != nil {
			return err
		}
		p := &l.parts[len(l.parts)-1]
		if p.isBudget = of.Reset == Midnight; !p.isBudget {
			p.first = firstOf(of.Amount, limit.Burst)
		}
		p.key, p.max = s.key, s.max
	}
	return nil
}

func (l *Limits) openSlots(ctx context.Context) error {
	if l.config.InFlight == 0 {
		return nil
	}
	c := l.in(profile.InFlight, throttle.Limit{}, l.config.QuotasOf.Limits[inFlightKey])
	slots, err := numathrottle.OpenInFlight(ctx, l.config.InFlight, c)
	if err != nil {
		return err
	}
	l.parts, l.closers = append(l.parts, part{kind: profile.InFlight, pool: c.Pool, limiter: slots, amount: one}), append(l.closers, slots.Close)
	return nil
}

func (l *Limits) openCounters(ctx context.Context) error {
	if opening.Planning(ctx) {
		return nil
	}
	meters, err := health.OpenMeters(ctx, l.config.Pool.HealthAddr, l.config.Pool.ID, l.log)
	if err != nil {
		return err
	}
	l.closers = append(l.closers, meters.Close)
	if own := l.config.Pool.MeterProvider; own != nil {
		meters.Providers = append(meters.Providers, own)
	}
	l.counters, err = newCounters(meters.Providers)
	return err
}

// Close leaves the pools. It is called once, after the last draw.
func (l *Limits) Close() error {
	var errs []error
	for _, end := range l.closers {
		errs = append(errs, end())
	}
	l.closers = nil
	return errors.Join(errs...)
}
