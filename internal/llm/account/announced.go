package account

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/llm/announce"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An announcer is a provider that announces limits in headers of a dialect: at least those of a minute on kinds.
type announcer struct {
	dialect announce.Dialect
	kinds   []profile.Kind
}

// announcers are the providers that announce limits. The others announce none.
var announcers = map[profile.Name]announcer{
	profile.OpenAI:    {announce.OpenAI, []profile.Kind{profile.Requests, profile.Tokens}},
	profile.Azure:     {announce.Azure, []profile.Kind{profile.Tokens}},
	profile.Anthropic: {announce.Anthropic, []profile.Kind{profile.Requests, profile.Input, profile.Output}},
	profile.Groq:      {announce.Groq, []profile.Kind{profile.Tokens}},
	profile.Mistral:   {announce.Mistral, []profile.Kind{profile.Requests, profile.Tokens}},
}

// Where limits are announced and none is configured, mostAnnounced is the largest that is followed, and firstAnnounced the limit before
// anything was announced: both per minute.
func mostAnnounced(k profile.Kind) int {
	if k == profile.Requests {
		return 100_000
	}
	return 100_000_000
}

func firstAnnounced(k profile.Kind) int {
	if k == profile.Requests {
		return 60
	}
	return 60_000
}

// checkAnnounced returns the faults of Announced.
func (c *Config) checkAnnounced() (faults []error) {
	bad := func(problem, allowed string) {
		faults = append(faults, &config.FieldError{Field: "max", Problem: problem, Allowed: allowed})
	}
	if _, ok := announcers[c.Provider]; !ok {
		bad(fmt.Sprintf("is announced, but %s announces no limits", cmp.Or(c.Provider, profile.SelfHosted)),
			"with `openai`, `azure`, `anthropic`, `groq` or `mistral`; numbers for the limits of others")
	}
	if store, _ := config.ParseStore(c.Pool.Store); store.Kind == config.Static {
		bad("is announced, but the store is static", "numbers with static://, whose replicas do not know of each other")
	}
	return faults
}

// follow makes a limit of a kind follow what the service announces, if that is set.
func (c *Config) follow(l throttle.Limit, k profile.Kind, configured bool) throttle.Limit {
	if !c.Announced {
		return l
	}
	first := 0
	if !configured { // what is a part of the limit is one of the limit that it begins with
		first = firstAnnounced(k)
		l.Burst = max(int(int64(l.Burst)*int64(first)/int64(l.Max)), 1)
		if l.Adaptive && l.AdaptiveMin == 0 {
			l.AdaptiveMin = max(first/100, 1)
		}
	}
	return hook.Follow(l, int64(first)).(throttle.Limit) //nolint:forcetypeassert,errcheck // as documented
}

// tell tells the pools what the service announces for their limits.
func (l *Limits) tell(figures map[profile.Kind]float64) {
	if l.config.Limiter != nil { // whose period is unknown
		return
	}
	for i := range l.parts {
		p := &l.parts[i]
		tokens, ok := figures[p.kind]
		if !ok && p.kind == profile.Requests && max(l.config.RequestsPerMinute, l.config.RequestsPerDay.Amount) == 0 { // told of a day only
			tokens, ok = figures[profile.RequestsDay]
			tokens /= day.Minutes()
		}
		if !ok || p.isBudget {
			continue
		}
		n := int64(max(tokens, 1))
		hook.Announce(p.limiter, n)
		if l.config.Announced && p.told.changed(n, time.Now()) {
			l.log.Info("the service announces a limit, which the pool follows", "limit", p.pool, "amount", n)
		}
	}
}

// A told is the limit that the service announced when that was last logged.
type told struct {
	mu     sync.Mutex
	amount int64
	at     time.Time
}

// changed reports whether a limit is to be logged: another one, at most once a minute.
func (t *told) changed(amount int64, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if amount == t.amount || now.Sub(t.at) < time.Minute {
		return false
	}
	t.amount, t.at = amount, now
	return true
}

// announced takes what a service says about its limits.
func (l *Limits) announced(h http.Header, now time.Time) {
	figures := map[profile.Kind]float64{}
	defer func() { l.tell(figures) }()
	for _, f := range announce.Read(announcers[l.config.Provider].dialect, h, now) {
		kind, per := kindOf(f)
		if kind == "" {
			continue
		}
		name := l.config.Pool.Pool + "/" + string(kind)
		if warning := l.watch.Note(name, f, int64(l.config.amount(kind)), per); warning != "" {
			l.log.Warn(warning) //nolint:sloglint // it is a sentence
		}
		scale := float64(per) / float64(f.Per)
		amount := float64(f.Limit) * scale
		l.counters.announced(name, amount, float64(f.Remaining)*scale, f.HasRemaining)
		if before, ok := figures[kind]; ok {
			amount = min(amount, before)
		}
		figures[kind] = amount
	}
}

// kindOf returns the limit that a figure is about, with its period; empty for one that no limit has.
func kindOf(f announce.Figure) (profile.Kind, time.Duration) {
	of := map[announce.Kind][2]profile.Kind{
		announce.Requests: {profile.Requests, profile.RequestsDay}, announce.Tokens: {profile.Tokens, profile.TokensDay},
		announce.Input: {profile.Input}, announce.Output: {profile.Output},
	}[f.Kind]
	switch f.Per {
	case day:
		return of[1], day
	case time.Second, 10 * time.Second, time.Minute, time.Hour:
		return of[0], time.Minute
	default:
		return "", 0
	}
}

// amount returns the configured limit of a kind.
func (c *Config) amount(k profile.Kind) int {
	switch k {
	case profile.Requests:
		return c.RequestsPerMinute
	case profile.Input:
		return c.InputTokensPerMinute
	case profile.Output:
		return c.OutputTokensPerMinute
	case profile.Tokens:
		return c.TokensPerMinute
	case profile.RequestsDay:
		return c.RequestsPerDay.Amount
	case profile.TokensDay:
		return c.TokensPerDay.Amount
	default:
		return 0
	}
}

// announced records a figure, in the unit of the limit with that name.
func (c counters) announced(name string, limit, remaining float64, hasRemaining bool) {
	of := metric.WithAttributes(attribute.String("limit", name))
	for i := range c.limits {
		c.limits[i].Record(context.Background(), limit, of)
		if hasRemaining {
			c.remaining[i].Record(context.Background(), remaining, of)
		}
	}
}
