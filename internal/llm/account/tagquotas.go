package account

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Settings that quotas may name, beside the limits of a minute: a budget in money, and calls in flight.
const (
	budgetKey   = "budget"
	inFlightKey = "inFlight"
)

// QuotaLimits are the limits that quotas may name: those of a minute, calls in flight, and the budget in money.
var QuotaLimits = []config.QuotaLimit{
	{Key: "tokensPerMinute"},
	{Key: "inputTokensPerMinute"},
	{Key: "outputTokensPerMinute"},
	{Key: "requestsPerMinute"},
	{Key: inFlightKey},
	{Key: budgetKey, Read: readBudgetQuota, Form: config.MappingForm(budgetFields)},
}

// QuotaKey returns the setting that quotas name for the limit of a pool, by the suffix of the pool's name; empty for another name.
func QuotaKey(pool string) string {
	i := strings.LastIndexByte(pool, '/') + 1
	if i == 0 {
		return "" // it is no further pool of an account
	}
	return map[string]string{
		string(profile.Tokens): "tokensPerMinute", string(profile.Input): "inputTokensPerMinute", string(profile.Output): "outputTokensPerMinute",
		string(profile.Requests): "requestsPerMinute", string(profile.InFlight): inFlightKey, MoneySuffix[1:]: budgetKey,
	}[pool[i:]]
}

// readBudgetQuota reads a budget in money as a quota in millionths.
func readBudgetQuota(n *yaml.Node, name string) (q limit.Quota, faults []config.BlockFault) {
	var b Budget
	if faults = config.Mapping(budgetFields, n, name, &b); len(faults) > 0 {
		return q, faults
	}
	for _, err := range checkBudget(name, b) {
		faults = append(faults, config.BlockFault{Field: err.Field, Problem: err.Problem, Allowed: err.Allowed, Line: n.Line})
	}
	if parse(b.Amount) == 0 {
		faults = append(faults, config.BlockFault{Field: name + ".amount", Problem: "is not above 0", Allowed: "above 0", Line: n.Line})
	}
	if len(faults) > 0 {
		return q, faults
	}
	return b.Quotas().Other, nil
}

// quotasOf returns the quotas of a limit. The main one also has those that name no limit.
func (c *Config) quotasOf(key string, isMain bool) throttle.Quotas {
	if isMain && c.Quotas.Given() {
		return c.Quotas
	}
	return c.QuotasOf.Limits[key]
}

// BudgetQuotas returns the budgets in money of tags.
func (c *Config) BudgetQuotas() throttle.Quotas { return c.QuotasOf.Limits[budgetKey] }

// checkQuotasOf returns the faults of quotas that name limits.
func (c *Config) checkQuotasOf() (faults []error) {
	bad := func(field, problem, allowed string) {
		faults = append(faults, &config.FieldError{Field: field, Problem: problem, Allowed: allowed})
	}
	limits := map[string]throttle.Limit{}
	for i, s := range c.perMinute() {
		isMain := i == 0 && !c.Main
		limits[s.key] = c.shaped(s, isMain)
		if _, named := c.QuotasOf.Limits[s.key]; named && isMain && c.Quotas.Given() {
			bad("quotas", "has quotas of "+s.key+" twice: some name it, and some name no limit, which means the same", "one way to name it")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.QuotasOf.Limits)) {
		of, q := limits[key], c.QuotasOf.Limits[key]
		switch {
		case key == budgetKey:
			of = unbounded
		case key == inFlightKey && c.InFlight > 0:
			faults = append(faults, opening.CheckSlotQuotasOf(key, c.InFlight, q, (*opening.Config)(&c.Pool))...)
			continue
		case of.Max == 0:
			if c.InFlight > 0 {
				limits[inFlightKey] = throttle.Limit{}
			}
			there := strings.Join(slices.Sorted(maps.Keys(limits)), ", ")
			bad("quotas", "name "+key+", but there is no such limit", "limits that are set: "+cmp.Or(there, "none is"))
			continue
		}
		faults = append(faults, opening.CheckQuotasOf(key, of, q, (*opening.Config)(&c.Pool))...)
	}
	return faults
}

// mostOf returns the most that a call of the limiter's tag, or of both its levels, is ever granted; 0: any number. A key without a quota of its
// own is not among the others.
func (l *limiter) mostOf(q throttle.Quotas) int {
	most := mostOf(q, cmp.Or(l.first, l.tag))
	if name, _ := q.Find(l.tag); name != "" {
		return int(tightest(int64(most), int64(mostOf(q, l.tag))))
	}
	return most
}

// tightest returns the smaller of two bounds; 0 is none.
func tightest(a, b int64) int64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// mostOf returns the most that a call of a tag is ever granted by its quota; 0: any number.
func mostOf(q throttle.Quotas, tag string) int {
	_, of := q.Find(tag)
	most := int64(of.Total)
	if of.Hard {
		most = of.Largest()
	}
	for _, b := range of.Budgets {
		if b.Then != limit.ThenLower {
			most = tightest(most, b.Amount)
		}
	}
	if of.Shadow {
		return 0
	}
	return int(min(most, math.MaxInt32))
}
