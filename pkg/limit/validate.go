package limit

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
)

// Bounds of the fields of quotas.
const (
	maxTags = 1000

	// minHardPer is the shortest Per of a hard quota: with less, the promise would cost most of Total.
	minHardPer = 10 * time.Second
	// minHardTotal leaves one token after subtracting the burst and the largest draw.
	minHardTotal = 3
)

// A FieldError describes one fault in quotas.
type FieldError struct {
	// Field is the path of the field, such as quotas.tags.acme.reserved.
	Field string
	// Problem describes the fault, such as "is -1".
	Problem string
	// Allowed gives the allowed values. Empty if the problem says it all.
	Allowed string
}

// Error returns the field, the problem and the allowed values in one line.
func (e *FieldError) Error() string {
	text := e.Field + " " + e.Problem
	if e.Allowed != "" {
		text += ", allowed: " + e.Allowed
	}
	return text
}

// A ReservedError says that quotas reserve more than the limit grants in the long run. Rates are in tokens per second.
type ReservedError struct {
	Reserved, Limit float64
	// Hard says that the limit is hard, so it grants less than its max.
	Hard bool
}

// Error returns both in one line.
func (e *ReservedError) Error() string {
	most := "the limit, which is "
	if e.Hard {
		most = "what the hard limit grants in the long run, which is "
	}
	return fmt.Sprintf("quotas reserve %s tokens per second together, allowed: at most %s%s", rateText(e.Reserved), most, rateText(e.Limit))
}

func rateText(rate float64) string { return strconv.FormatFloat(rate, 'g', 6, 64) }

// Validate returns an error that names every field that is out of bounds, or nil. The limit is most tokens per per; a per of 0 means a
// second. All reserved rates together may be at most the limit: exceeding it alone is a *ReservedError. Other faults are *FieldErrors,
// joined by errors.Join. A hard limit grants less: see ValidateHard.
func (q Quotas) Validate(most int, per time.Duration) error { return q.validate(most, per, 0) }

// ValidateHard is Validate for a hard limit that grants only granted tokens per second in the long run, the bound for all reserved rates
// together.
func (q Quotas) ValidateHard(most int, per time.Duration, granted float64) error {
	return q.validate(most, per, granted)
}

// validate takes the rate granted in the long run; 0 means the whole limit.
func (q Quotas) validate(most int, per time.Duration, granted float64) error {
	if !q.Given() {
		return nil
	}
	if per == 0 {
		per = defaultPer
	}
	c := checker{per: per}
	if most <= 0 || per < 0 {
		c.bad("quotas", "are set, but there is no limit", "a limit with quotas: max of 1 or more")
		return errors.Join(c.faults...)
	}
	c.quotas(q)
	// A millionth of a millionth: rates such as a third have no exact float64.
	fits := ReservedError{Reserved: q.ReservedRate(per), Limit: rate(most, per)}
	if granted > 0 {
		fits.Limit, fits.Hard = granted, true
	}
	if len(c.faults) == 0 && fits.Reserved > fits.Limit*(1+1e-12) {
		c.faults = append(c.faults, &fits)
	}
	return errors.Join(c.faults...)
}

// ValidateSlots is Validate for a limit on calls in flight: amounts are calls at once, so there are no periods, bursts and budgets.
func (q Quotas) ValidateSlots(slots int) error {
	if !q.Given() {
		return nil
	}
	c := checker{per: defaultPer}
	if slots <= 0 {
		c.bad("quotas", "are set, but there is no limit", "a limit with quotas: 1 call in flight or more")
		return errors.Join(c.faults...)
	}
	c.slots("quotas.other", &q.Other)
	for _, name := range slices.Sorted(maps.Keys(q.Tags)) {
		quota := q.Tags[name]
		c.slots("quotas.tags."+shown(name), &quota)
	}
	for i := range q.Match {
		c.slots(fmt.Sprintf("quotas.match[%d]", i), &q.Match[i].Quota)
	}
	if len(c.faults) > 0 {
		return errors.Join(c.faults...)
	}
	if err := q.validate(slots, 0, 0); err != nil {
		if _, ok := errors.AsType[*ReservedError](err); !ok {
			return err
		}
		c.bad("quotas", fmt.Sprintf("reserve %d calls in flight together", int(q.ReservedRate(0))), fmt.Sprintf("at most the limit, which is %d", slots))
	}
	return errors.Join(c.faults...)
}

// slots refuses what a quota of calls in flight does not have.
func (c *checker) slots(field string, q *Quota) {
	const none = "none on a limit on calls in flight"
	if q.Per != 0 {
		c.is(field+".per", q.Per, none)
	}
	if q.Burst != 0 {
		c.is(field+".burst", q.Burst, none)
	}
	if len(q.Budgets) > 0 {
		c.bad(field+".budgets", "are set", none)
	}
	if q.Hard {
		c.is(field+".hard", true, none)
	}
}

// ReservedRate returns the rate that Tags and Other reserve together, in tokens per second. per is the period of the limit; 0 means a
// second.
func (q Quotas) ReservedRate(per time.Duration) float64 {
	sum := rate(q.Other.Reserved, q.Other.WithDefaults(per).Per)
	for _, name := range slices.Sorted(maps.Keys(q.Tags)) { // always the same sum
		quota := q.Tags[name]
		sum += rate(quota.Reserved, quota.WithDefaults(per).Per)
	}
	return sum
}

func rate(tokens int, per time.Duration) float64 { return float64(tokens) / per.Seconds() }

// A checker collects faults. per is the period of the limit.
type checker struct {
	per    time.Duration
	faults []error
}

func (c *checker) bad(field, problem, allowed string) {
	c.faults = append(c.faults, &FieldError{Field: field, Problem: problem, Allowed: allowed})
}

func (c *checker) is(field string, value any, allowed string) {
	c.bad(field, fmt.Sprintf("is %v", value), allowed)
}

func (c *checker) quotas(q Quotas) {
	if len(q.Tags) > maxTags {
		c.bad("quotas.tags", fmt.Sprintf("has %d tags", len(q.Tags)), fmt.Sprintf("at most %d; patterns in match take any number", maxTags))
	}
	if len(q.Match) > bounds.MaxPatterns {
		c.bad("quotas.match", fmt.Sprintf("has %d patterns", len(q.Match)), fmt.Sprintf("at most %d", bounds.MaxPatterns))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Tags)) {
		c.name("quotas.tags", name)
		c.quota("quotas.tags."+shown(name), q.Tags[name])
	}
	seen := map[string]int{}
	for i, p := range q.Match {
		field := fmt.Sprintf("quotas.match[%d]", i)
		c.name(field+".tag", p.Tag)
		if _, err := path.Match(p.Tag, ""); err != nil {
			c.is(field+".tag", shortQuote(p.Tag), "a pattern such as free/*, as path.Match takes it")
		}
		if first, twice := seen[p.Tag]; twice {
			c.bad(field+".tag", fmt.Sprintf("is %s, as that of quotas.match[%d] is, which counts", shortQuote(p.Tag), first), "each pattern once")
		} else {
			seen[p.Tag] = i
		}
		if p.Reserved != 0 {
			c.is(field+".reserved", p.Reserved, "0, for any number of tags may match")
			p.Reserved = 0
		}
		c.quota(field, p.Quota)
	}
	c.quota("quotas.other", q.Other)
}

// name checks the name of a tag, or a pattern.
func (c *checker) name(field, name string) {
	if !tagname.Valid(name) {
		c.bad(field, "has the name "+shortQuote(name), fmt.Sprintf("1 to %d bytes of UTF-8 without control characters", tagname.MaxLen))
	}
}

// shown prints a name as part of a field path, unquoted if it looks like a word.
func shown(name string) string {
	plain := name != "" && len(name) <= tagname.MaxLen && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '/'
	})
	if plain {
		return name
	}
	return shortQuote(name)
}

// shortQuote quotes a text, cut to fit a line.
func shortQuote(text string) string {
	if len(text) <= tagname.MaxLen {
		return strconv.Quote(text)
	}
	cut := tagname.MaxLen
	for cut > tagname.MaxLen-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strconv.Quote(text[:cut]) + "..."
}

func (c *checker) quota(field string, q Quota) {
	good := len(c.faults)
	upTo := func(name string, value, most int, allowed string) {
		if value < 0 || value > most {
			c.is(field+name, value, allowed)
		}
	}
	if q.Per != 0 && (q.Per < bounds.MinPer || q.Per > bounds.MaxPer || q.Per%time.Microsecond != 0) {
		c.is(field+".per", q.Per, "1ms to 744h in whole microseconds")
	}
	upTo(".reserved", q.Reserved, bounds.MaxTokens, "0 to the limit")
	upTo(".total", q.Total, bounds.MaxTokens, "0 (blocked) to 1000000000, or none")
	upTo(".burst", q.Burst, bounds.MaxTokens, "0 (100 ms worth of total) to 1000000000")
	upTo(".weight", q.Weight, bounds.MaxWeight, "1 to 1000, or 0 for 1")
	if q.Class != "" && q.Class != ClassInteractive && q.Class != ClassBatch {
		c.is(field+".class", shortQuote(string(q.Class)), "interactive or batch")
	}
	c.budgets(field+".budgets", q.Budgets)
	if len(c.faults) > good {
		return
	}
	c.together(field, q.WithDefaults(c.per), q.Burst > 0)
}

// together checks combinations of fields that are valid by themselves.
func (c *checker) together(field string, q Quota, burstGiven bool) {
	if q.Total > int(q.Per) {
		c.is(field+".total per "+q.Per.String(), q.Total, "at most 1000000000 tokens per second")
	}
	if q.Total > 0 && q.Reserved > q.Total {
		c.is(field+".reserved", q.Reserved, fmt.Sprintf("at most total, which is %d", q.Total))
	}
	if q.Blocked && q.Total > 0 {
		c.is(field+".blocked", true, "false with total")
	}
	if q.Total == 0 && !q.Blocked && burstGiven {
		c.is(field+".burst", q.Burst, "0 without total")
	}
	switch {
	case !q.Hard:
	case q.Blocked:
	case q.Total == 0:
		c.is(field+".hard", true, "false without total")
	case q.Per < minHardPer:
		c.is(field+".per", q.Per, "10s or more with hard")
	case q.Total < minHardTotal:
		c.is(field+".total", q.Total, fmt.Sprintf("%d or more with hard", minHardTotal))
	}
}

// allowedZone names time/tzdata because a program on a machine without zones knows only the zones of that package.
const allowedZone = "the IANA name of a time zone, such as Europe/Berlin; import time/tzdata where the machine has none"

func (c *checker) budgets(field string, budgets []Budget) {
	seen := map[Period]bool{}
	for i, b := range budgets {
		at := fmt.Sprintf("%s[%d]", field, i)
		if b.Amount < 1 || b.Amount > bounds.MaxAmount {
			c.is(at+".amount", b.Amount, "1 to 1000000000000000")
		}
		switch {
		case b.Per != PeriodHour && b.Per != PeriodDay && b.Per != PeriodMonth:
			c.is(at+".per", shortQuote(string(b.Per)), "hour, day or month")
		case seen[b.Per]:
			c.bad(at+".per", "is "+string(b.Per)+" once more", "at most one budget for each of hour, day and month")
		}
		seen[b.Per] = true
		if _, err := zone(b.Zone); err != nil || b.Zone == "Local" { // Local differs from machine to machine
			c.is(at+".zone", shortQuote(b.Zone), allowedZone)
		}
		if b.Then != "" && b.Then != ThenRefuse && b.Then != ThenFallback && b.Then != ThenLower {
			c.is(at+".then", shortQuote(string(b.Then)), "refuse, fallback or batch")
		}
	}
}
