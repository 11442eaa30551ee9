package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// most is the largest amount of a limit.
const most = 1_000_000_000

// LimitFields describes the settings of limits on LLMs, besides those on requests and calls in flight, which every service has.
func LimitFields[C any](at func(C) *Config) []config.Field[C] {
	number := func(key, doc, unit, example string, of func(c *Config) *int) config.Field[C] {
		return config.NumberField(key, 0, most, "0: no limit", doc, func(c C) *int { return of(at(c)) }).In(unit).Like(example)
	}
	announced := config.BoolWord("max", "announced", "the configured limits alone",
		"The limits follow what the service announces; those that are set are the most then", func(c C) *bool { return &at(c).Announced })
	announced.Shared = true
	return []config.Field[C]{
		announced,
		number("inputTokensPerMinute", "Tokens of prompts per minute, where a provider counts them apart", "tokens", "450000",
			func(c *Config) *int { return &c.InputTokensPerMinute }),
		number("outputTokensPerMinute", "Tokens of answers per minute, where a provider counts them apart", "tokens", "90000",
			func(c *Config) *int { return &c.OutputTokensPerMinute }),
		number("tokensPerMinute", "Tokens of prompts and answers per minute, over the whole pool", "tokens", "200000",
			func(c *Config) *int { return &c.TokensPerMinute }),
		dayField("requestsPerDay", "Calls per day", func(c C) *Day { return &at(c).RequestsPerDay }),
		dayField("tokensPerDay", "Tokens per day, counted as those of `tokensPerMinute`", func(c C) *Day { return &at(c).TokensPerDay }),
	}
}

// CountFields describes how calls count against the limits.
func CountFields[C any](at func(C) *Config) []config.Field[C] {
	return []config.Field[C]{
		{
			Key: "charge", Allowed: "`larger`, `sum` or `usage`", Default: "`larger` for `openai`, `sum` for `azure`, else `usage`",
			Doc:   "How a call counts against `tokensPerMinute` and `tokensPerDay`, instead of as the provider counts",
			Value: config.Choice(func(c C) *profile.Charge { return &at(c).Charge }, profile.ByLarger, profile.BySum, profile.ByUsage),
		},
		{
			Key: "cachedInput", Example: "counted", Allowed: "`free` or `counted`", Default: "the provider's",
			Doc:   "Whether input that came from a cache counts against the limits on tokens",
			Value: config.Choice(func(c C) *profile.CachedInput { return &at(c).CachedInput }, profile.CachedFree, profile.CachedCounted),
		},
		config.NumberField("outputWeight", 1, 1000, "1", "How many tokens a token of an answer counts for in `tokensPerMinute` and `tokensPerDay`",
			func(c C) *int { return &at(c).OutputWeight }).In("tokens").Like("5"),
		config.BoolField("countInputs", "Each text of a call for embeddings counts as a request; `gemini` and `cohere` count so anyway",
			func(c C) *bool { return &at(c).CountInputs }),
		config.NumberField("outputTokens", 1, 1_000_000, "1024",
			"What is drawn for an answer before one was seen, and at most if its request does not bound it",
			func(c C) *int { return &at(c).OutputTokens }).In("tokens").Like("512"),
	}
}

// MediaFields describes the costs of prompts that are not text.
func MediaFields[C any](at func(C) *Config) []config.Field[C] {
	number := func(key, byDefault, doc, unit, example string, of func(c *Config) *int) config.Field[C] {
		return config.NumberField(key, 1, 1_000_000, byDefault, doc, func(c C) *int { return of(at(c)) }).In(unit).Like(example)
	}
	return []config.Field[C]{
		number("imageTokens", "1600", "What an image counts for", "tokens", "258", func(c *Config) *int { return &c.Media.ImageTokens }),
		number("audioBytesPerToken", "1000", "How many bytes of audio or video count as a token", "bytes", "500",
			func(c *Config) *int { return &c.Media.AudioBytesPerToken }),
		number("fileBytesPerToken", "50", "How many bytes of a PDF or another file count as a token", "bytes", "100",
			func(c *Config) *int { return &c.Media.FileBytesPerToken }),
	}
}

var dayFields = []config.Field[*Day]{
	config.NumberField("amount", 1, most, "none: it is required", "In a day", func(d *Day) *int { return &d.Amount }),
	config.ChoiceField("reset", "When it is there again: all the time, or at midnight", func(d *Day) *Reset { return &d.Reset }, Rolling, Midnight),
	config.TextField("zone", "an IANA name of a time zone", "UTC", "Whose midnight; with `midnight`", func(d *Day) *string { return &d.Zone }),
	config.NumberField("burst", 1, most, "the amount", "How much is saved up; with `rolling`", func(d *Day) *int { return &d.Burst }),
}

// dayField is a limit of a day.
func dayField[C any](key, doc string, at func(C) *Day) config.Field[C] {
	return config.Field[C]{
		Key: key, Example: "{amount: 10000, reset: midnight, zone: America/Los_Angeles}", Default: "none",
		Allowed: "a mapping of `amount`, `reset` (`rolling` or `midnight`), `zone` and `burst`, in the variable too", Doc: doc,
		Value: config.Block(func(c C, n *yaml.Node) []config.BlockFault {
			var d Day
			faults := config.Mapping(dayFields, n, key, &d)
			if problem, allowed := d.check(); len(faults) == 0 && problem != "" {
				faults = append(faults, config.BlockFault{Field: key, Problem: problem, Allowed: allowed, Line: n.Line})
			}
			*at(c) = d
			return faults
		}, func(c C) string { return OneLine(at(c), *at(c) != Day{}) }),
	}
}

// check returns a fault of a day's limit; none for the zero Day.
func (d Day) check() (problem, allowed string) {
	switch _, err := time.LoadLocation(d.Zone); {
	case d == Day{}:
	case d.Amount < 1 || d.Amount > most:
		return fmt.Sprintf("has the amount %d", d.Amount), fmt.Sprintf("1 to %d", most)
	case d.Reset != "" && d.Reset != Rolling && d.Reset != Midnight:
		return fmt.Sprintf("has the reset %q", d.Reset), "rolling or midnight"
	case err != nil || d.Zone == "Local":
		return fmt.Sprintf("has the zone %q", d.Zone), "an IANA name of a time zone"
	case d.Reset != Midnight && d.Zone != "":
		return "has a zone without reset: midnight", "with reset: midnight"
	case d.Burst < 0 || d.Burst > most:
		return fmt.Sprintf("has the burst %d", d.Burst), fmt.Sprintf("1 to %d", most)
	case d.Reset == Midnight && d.Burst != 0:
		return "has a burst with reset: midnight", "with reset: rolling"
	}
	return "", ""
}

// OneLine formats a block as JSON, which is YAML, too; empty if it is not set.
func OneLine(v any, isSet bool) string {
	if !isSet {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil { // nothing in it can fail
		return config.Redacted
	}
	return string(text)
}

// Bounds of money.
const (
	mostPrice  = 1_000_000
	mostBudget = 1_000_000_000
	mostPrices = 100
)

var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,9})(\.[0-9]{1,6})?$`)

// isAmount reports whether a text is a valid amount of money.
func isAmount(n json.Number, most float64) bool {
	f, _ := strconv.ParseFloat(string(n), 64)
	return decimal.MatchString(string(n)) && f <= most
}

// amountField is a decimal number.
func amountField[C any](key string, most float64, byDefault, doc string, at func(C) *json.Number) config.Field[C] {
	return config.Field[C]{
		Key: key, Allowed: fmt.Sprintf("a number, 0 to %.0f, with at most 6 decimals", most), Default: byDefault, Doc: doc,
		Value: config.Text(func(c C) *string { return (*string)(at(c)) }),
		Range: func(c C) bool { return *at(c) == "" || isAmount(*at(c), most) },
	}
}

var priceFields = []config.Field[*Price]{
	amountField("input", mostPrice, "0", "Of a million tokens of prompts", func(p *Price) *json.Number { return &p.Input }),
	amountField("output", mostPrice, "required", "Of a million tokens of answers", func(p *Price) *json.Number { return &p.Output }),
	amountField("cachedInput", mostPrice, "`input`", "Of a million tokens from a cache", func(p *Price) *json.Number { return &p.CachedInput }),
	amountField("cacheWrite", mostPrice, "`input`", "Of a million tokens put into a cache", func(p *Price) *json.Number { return &p.CacheWrite }),
	amountField("cacheWrite1h", mostPrice, "`cacheWrite`", "The same, for an hour", func(p *Price) *json.Number { return &p.CacheWrite1h }),
	amountField("perCall", mostPrice, "0", "Of one call", func(p *Price) *json.Number { return &p.PerCall }),
}

var budgetFields = []config.Field[*Budget]{
	amountField("amount", mostBudget, "required", "In one window", func(b *Budget) *json.Number { return &b.Amount }),
	config.ChoiceField("per", "The window", func(b *Budget) *limit.Period { return &b.Per }, limit.PeriodDay, limit.PeriodHour, limit.PeriodMonth),
	config.TextField("zone", "an IANA name of a time zone", "UTC", "Where days and months begin", func(b *Budget) *string { return &b.Zone }),
}

// MoneyFields describes prices and their budget.
func MoneyFields[C any](prices func(C) *map[string]Price, budget func(C) *Budget) []config.Field[C] {
	return []config.Field[C]{
		{
			Key: "prices", Example: "{gpt-4o: {input: 2.5, output: 10, cachedInput: 1.25}}", Default: "none",
			Allowed: "a mapping of models to `input`, `output`, `cachedInput`, `cacheWrite`, `cacheWrite1h` and `perCall`, in the variable too",
			Doc:     "What a million tokens of a model cost, and a call, in any currency",
			Value: config.Block(func(c C, n *yaml.Node) []config.BlockFault { return readPrices(prices(c), n) },
				func(c C) string { return OneLine(*prices(c), len(*prices(c)) > 0) }),
		},
		{
			Key: "budget", Example: "{amount: 25, per: day, zone: Europe/Berlin}", Default: "none",
			Allowed: "a mapping of `amount`, `per` (`hour`, `day` or `month`) and `zone`, in the variable too; with `prices`",
			Doc:     "What all calls of the pool may cost in each calendar window",
			Value: config.Block(func(c C, n *yaml.Node) []config.BlockFault {
				*budget(c) = Budget{}
				return config.Mapping(budgetFields, n, "budget", budget(c))
			}, func(c C) string { return OneLine(*budget(c), *budget(c) != Budget{}) }),
		},
	}
}

// readPrices reads the setting.
func readPrices(prices *map[string]Price, n *yaml.Node) []config.BlockFault {
	entries, faults := config.Entries(n, "prices", mostPrices, "a mapping of models to prices")
	*prices = map[string]Price{}
	for _, e := range entries {
		var p Price
		faults = append(faults, config.Mapping(priceFields, e.Value, fmt.Sprintf("prices.%.60q", e.Name), &p)...)
		(*prices)[e.Name] = p
	}
	return faults
}

// Check returns the faults of a configuration that was filled by hand.
func (c *Config) Check() []error {
	at := func(c *Config) *Config { return c }
	faults := config.Check(slices.Concat(LimitFields(at), CountFields(at), MediaFields(at)), c)
	bad := func(field, problem, allowed string) {
		faults = append(faults, &config.FieldError{Field: field, Problem: problem, Allowed: allowed})
	}
	if c.Provider != "" && c.Provider != profile.Generic && !slices.Contains(profile.Names(), c.Provider) {
		bad("provider", fmt.Sprintf("is %q", c.Provider), fmt.Sprintf("one of %v", profile.Names()))
	}
	for _, s := range []set{{key: "requestsPerMinute", max: c.RequestsPerMinute}, {key: "inFlight", max: c.InFlight}} {
		if s.max < 0 || s.max > most {
			bad(s.key, fmt.Sprintf("is %d", s.max), fmt.Sprintf("0 to %d", most))
		}
	}
	for i, d := range []Day{c.RequestsPerDay, c.TokensPerDay} {
		if problem, allowed := d.check(); problem != "" {
			bad([]string{"requestsPerDay", "tokensPerDay"}[i], problem, allowed)
		}
	}
	return faults
}

// CheckMoney returns the faults of prices and a budget that were filled by hand, or that no single field shows. With texts the calls have
// answers, whose price must be set. tags are the budgets of tags.
func CheckMoney(prices map[string]Price, b Budget, tags throttle.Quotas, texts bool) (faults []error) {
	bad := func(field, problem, allowed string) {
		faults = append(faults, &config.FieldError{Field: field, Problem: problem, Allowed: allowed})
	}
	for _, model := range slices.Sorted(maps.Keys(prices)) {
		p := prices[model]
		faults = append(faults, below(fmt.Sprintf("prices.%.60q", model), config.Check(priceFields, &p))...)
		if texts && p.Output == "" {
			bad(fmt.Sprintf("prices.%.60q.output", model), "is not set", "the price of answers; 0 for embeddings")
		}
	}
	for _, err := range checkBudget(budgetKey, b) {
		faults = append(faults, err)
	}
	if tags.Given() && len(prices) == 0 {
		bad("quotas", "name budget, without prices", "with prices")
	}
	switch {
	case b == Budget{}:
	case len(tags.Other.Budgets) > 0:
		bad("quotas.other.budget", "is set, and so is budget, which all calls share", "one of them")
	case b.Amount == "":
		bad("budget.amount", "is not set", "above 0")
	case len(prices) == 0:
		bad("budget", "is set without prices", "with prices")
	}
	return faults
}

// checkBudget returns the faults of a budget by itself.
func checkBudget(name string, b Budget) (faults []*config.FieldError) {
	for _, err := range config.Check(budgetFields, &b) {
		if e, ok := errors.AsType[*config.FieldError](err); ok {
			e.Field = name + "." + e.Field
			faults = append(faults, e)
		}
	}
	if _, err := time.LoadLocation(b.Zone); err != nil || b.Zone == "Local" {
		faults = append(faults, &config.FieldError{Field: name + ".zone", Problem: fmt.Sprintf("is %q", b.Zone), Allowed: "an IANA name of a time zone"})
	}
	return faults
}

// CheckPools returns the faults of the store and the policy for budgets, and for limits with a reset at midnight or that are announced, and
// those of quotas that name limits.
func (c *Config) CheckPools(b Budget) (faults []error) {
	if c.Announced {
		faults = c.checkAnnounced()
	}
	faults = append(faults, c.checkQuotasOf()...)
	for key, quotas := range map[string]throttle.Quotas{
		"requestsPerDay": c.RequestsPerDay.quotas(), "tokensPerDay": c.TokensPerDay.quotas(), "budget": b.Quotas(),
	} {
		pool := c.Pool
		pool.Limit, pool.Quotas = unbounded, quotas
		for _, err := range opening.CheckQuotas((*opening.Config)(&pool)) {
			faults = append(faults, &config.FieldError{Field: key, Problem: "cannot be kept: " + strings.TrimPrefix(err.Error(), "numathrottle: ")})
		}
	}
	return faults
}

// below names the fields of faults below a block.
func below(block string, faults []error) []error {
	for _, err := range faults {
		if e, ok := errors.AsType[*config.FieldError](err); ok {
			e.Field = block + "." + e.Field
		}
	}
	return faults
}
