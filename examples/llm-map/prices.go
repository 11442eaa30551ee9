package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Money is counted in millionths of the currency of the prices. A price for a million tokens is the same number of millionths per token.
const millionths = 1_000_000

// A price is the price of a million tokens.
type price struct {
	Input  json.Number `json:"input,omitempty"`
	Output json.Number `json:"output,omitempty"`
}

// of returns the cost of a call, in millionths, rounded up.
func (p price) of(prompt, completion int) int64 {
	in, _ := p.Input.Float64()
	out, _ := p.Output.Float64()
	return int64(math.Ceil(in*float64(prompt) + out*float64(completion)))
}

// A budgetSetting is an amount of money for each calendar window.
type budgetSetting struct {
	Amount json.Number  `json:"amount"`
	Per    limit.Period `json:"per,omitempty"`
	Zone   string       `json:"zone,omitempty"`
}

const (
	mostPrice  = 1_000_000
	mostBudget = 1_000_000_000
	mostPrices = 100
)

var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,9})(\.[0-9]{1,6})?$`)

// amountField is a decimal number.
func amountField[C any](key string, most float64, doc string, at func(C) *json.Number) config.Field[C] {
	return config.Field[C]{
		Key: key, Allowed: fmt.Sprintf("a number, 0 to %.0f, with at most 6 decimals", most), Default: "0", Doc: doc,
		Value: config.Text(func(c C) *string { return (*string)(at(c)) }),
		Range: func(c C) bool {
			if *at(c) == "" {
				return true
			}
			f, err := strconv.ParseFloat(string(*at(c)), 64)
			return decimal.MatchString(string(*at(c))) && err == nil && f <= most
		},
	}
}

var priceFields = []config.Field[*price]{
	amountField("input", mostPrice, "Of the prompt", func(p *price) *json.Number { return &p.Input }),
	amountField("output", mostPrice, "Of the answer", func(p *price) *json.Number { return &p.Output }),
}

var budgetFields = []config.Field[*budgetSetting]{
	amountField("amount", mostBudget, "In one window", func(b *budgetSetting) *json.Number { return &b.Amount }),
	config.ChoiceField("per", "The window", func(b *budgetSetting) *limit.Period { return &b.Per }, limit.PeriodDay, limit.PeriodHour, limit.PeriodMonth),
	config.TextField("zone", "an IANA name of a time zone", "UTC", "Where days and months begin", func(b *budgetSetting) *string { return &b.Zone }),
}

var moneyFields = []config.Field[*settings]{
	{
		Key: "prices", Example: "{gpt-4o: {input: 2.5, output: 10}}", Default: "none",
		Allowed: "a mapping of models to `input` and `output`, in the variable too",
		Doc:     "What a million tokens of a model cost, in any currency",
		Value:   config.Block(readPrices, func(s *settings) string { return oneLine(s.Prices, len(s.Prices) > 0) }),
	},
	{
		Key: "budget", Example: "{amount: 25, per: day, zone: Europe/Berlin}",
		Allowed: "a mapping of `amount`, `per` (`hour`, `day` or `month`) and `zone`, in the variable too; with `prices`",
		Default: "none",
		Doc:     "What all calls of the pool may cost in each calendar window",
		Value: config.Block(func(s *settings, n *yaml.Node) []config.BlockFault {
			s.Budget = budgetSetting{}
			return config.Mapping(budgetFields, n, "budget", &s.Budget)
		}, func(s *settings) string { return oneLine(s.Budget, s.Budget != budgetSetting{}) }),
	},
}

func readPrices(s *settings, n *yaml.Node) []config.BlockFault {
	entries, faults := config.Entries(n, "prices", mostPrices, "a mapping of models to prices")
	s.Prices = map[string]price{}
	for _, e := range entries {
		var p price
		faults = append(faults, config.Mapping(priceFields, e.Value, fmt.Sprintf("prices.%.60q", e.Name), &p)...)
		s.Prices[e.Name] = p
	}
	return faults
}

// oneLine formats a block as JSON, which is YAML, too; empty if it is not set.
func oneLine(v any, isSet bool) string {
	if !isSet {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil { // nothing in it can fail
		return config.Redacted
	}
	return string(text)
}

// moneyLimit is the limit of the budget's quota. It never binds: 1000 of the currency a second.
var moneyLimit = throttle.Limit{Max: 1_000_000_000}

// moneyQuotas returns the budget as quotas, for draws without a tag; none without a budget.
func (s *settings) moneyQuotas() throttle.Quotas {
	if s.Budget == (budgetSetting{}) {
		return throttle.Quotas{}
	}
	amount, _ := s.Budget.Amount.Float64()
	b := throttle.Budget{Amount: int64(math.Round(amount * millionths)), Per: cmp.Or(s.Budget.Per, limit.PeriodDay), Zone: s.Budget.Zone}
	return throttle.Quotas{Other: throttle.Quota{Budgets: []throttle.Budget{b}}}
}

// checkMoney finds budgets that cannot be kept. models are the called models.
func (s *settings) checkMoney(models []string, bad program.Complaint) {
	if s.Budget == (budgetSetting{}) {
		return
	}
	if s.Budget.Amount == "" {
		bad("budget.amount", "is not set", "above 0")
		return // other faults follow from it
	}
	if len(s.Prices) == 0 {
		bad("budget", "is set without prices", "with prices")
		return
	}
	slices.Sort(models)
	for _, model := range slices.Compact(models) {
		if _, known := s.Prices[model]; !known && model != "" {
			bad("prices", fmt.Sprintf("has none of the model %q, whose calls would cost nothing", model), "a price for each model, with a budget")
		}
	}
	c := s.Pool
	c.Limit, c.Quotas = moneyLimit, s.moneyQuotas()
	for _, err := range opening.CheckQuotas((*opening.Config)(&c)) {
		bad("budget", "cannot be kept: "+err.Error(), "")
	}
}
