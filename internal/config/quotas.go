package config

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// MaxQuotas is the maximum length of a text for Parse, in bytes.
const MaxQuotas = 1 << 20

// Bounds of the input: aliases make long lists of short texts. Validate has the real bounds.
const (
	mostTags     = 10_000
	mostPatterns = 1000
	mostBudgets  = 10
)

// A QuotaFaultError is one fault of a text, with its line: 0 for the whole text.
type QuotaFaultError struct {
	limit.FieldError

	Line int
}

// Error returns line, field, problem and the allowed values.
func (f *QuotaFaultError) Error() string {
	if f.Line == 0 {
		return f.FieldError.Error()
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.FieldError.Error())
}

// ParseQuotas reads quotas from YAML, which includes JSON. An empty text is no quotas, and {} are quotas without bounds; see Quotas.Given. It
// checks only the form: Quotas.Validate, which knows the limit, checks the ranges. The error joins a *QuotaFaultError for each fault.
func ParseQuotas(text []byte) (limit.Quotas, error) {
	if len(text) > MaxQuotas {
		return limit.Quotas{}, &limit.FieldError{Field: quotasKey, Problem: fmt.Sprintf("is longer than %d bytes", MaxQuotas)}
	}
	var q limit.Quotas
	n, fault := parseYAML(text, quotasKey)
	faults := []BlockFault{}
	if fault != nil {
		faults = append(faults, *fault)
	} else if n != nil {
		q, faults = ReadQuotas(n)
	}
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = &QuotaFaultError{limit.FieldError{Field: f.Field, Problem: f.Problem, Allowed: f.Allowed}, f.Line}
	}
	return q, errors.Join(errs...)
}

// quotasKey begins the fields of faults.
const quotasKey = "quotas"

// ReadQuotas is Parse for a node of a larger text. Its faults have the lines of that text.
func ReadQuotas(n *yaml.Node) (limit.Quotas, []BlockFault) {
	var r quotaReading
	if faults := Mapping(quotasFields, n, quotasKey, &r); len(faults) > 0 {
		return limit.Quotas{}, firstFaults(faults, quotasKey)
	}
	return r.main(), nil
}

// A quotaReading holds the quotas, or the quota or the budget in them, that is being read.
type quotaReading struct {
	quotas limit.Quotas
	one    limit.QuotaPattern
	budget limit.Budget

	// of has the parts of one by limit; see manyquotas.go. tags, match and other have those of the tags and patterns of quotas.
	of    map[string]limit.Quota
	tags  map[string]map[string]limit.Quota
	match []map[string]limit.Quota
	other map[string]limit.Quota
}

// main returns the quotas of the one limit, or the main one.
func (r *quotaReading) main() limit.Quotas {
	if r.quotas.Tags == nil { // they were given, even if empty
		r.quotas.Tags = map[string]limit.Quota{}
	}
	return r.quotas
}

type quotaSetting = Field[*quotaReading]

// quotasFields are the keys of quotas.
var quotasFields = quotasFieldsOf(quotaFields)

// quotasFieldsOf returns the keys of quotas whose quotas have the keys of fields. Nothing (null) is an empty value of a key.
func quotasFieldsOf(fields []quotaSetting) []quotaSetting {
	pattern := append(slices.Clone(fields), quotaText("tag", Schema{"type": []any{"string", "number", "boolean"}, "minLength": 1},
		func(r *quotaReading) *string { return &r.one.Tag }))
	return []quotaSetting{
		quotaBlock("tags", Schema{"type": []any{"object", "null"}, "additionalProperties": MappingForm(fields)},
			func(r *quotaReading, n *yaml.Node) []BlockFault { return readTags(fields, r, n) }),
		quotaBlock("match", listForm(bounds.MaxPatterns, pattern), func(r *quotaReading, n *yaml.Node) []BlockFault {
			return quotaList(n, "match", mostPatterns, pattern, func(of quotaReading) {
				r.quotas.Match, r.match = append(r.quotas.Match, of.one), append(r.match, of.of)
			})
		}),
		quotaBlock("other", MappingForm(fields), func(r *quotaReading, n *yaml.Node) []BlockFault {
			var of quotaReading
			faults := quotaMapping(fields, n, "other", &of)
			r.quotas.Other, r.other = of.one.Quota, of.of
			return faults
		}),
	}
}

// QuotasForm returns the JSON schema of quotas in a file: as a mapping, or as its text. Validate has the bounds that it repeats, and finds
// contradictions.
func QuotasForm() Schema { return quotasForm(quotasFields) }

func quotasForm(fields []quotaSetting) Schema {
	quotas := MappingForm(fields)
	quotas["type"] = "object" // nothing at all is empty
	return anyForm(quotas, patternForm("[:{]"))
}

func readTags(fields []quotaSetting, r *quotaReading, n *yaml.Node) (faults []BlockFault) {
	r.quotas.Tags, r.tags = map[string]limit.Quota{}, map[string]map[string]limit.Quota{}
	if IsNull(n) {
		return nil
	}
	entries, faults := Entries(n, "tags", mostTags, "a mapping from tags to quotas")
	for _, e := range entries {
		if len(faults) > maxFaults {
			break
		}
		var of quotaReading
		faults = append(faults, quotaMapping(fields, e.Value, fullName("tags", e.Name), &of)...)
		r.quotas.Tags[e.Name], r.tags[e.Name] = of.one.Quota, of.of
	}
	return faults
}

// quotaFields are the keys of a quota.
var quotaFields = []quotaSetting{
	quotaNumber("reserved", bounds.MaxTokens, func(r *quotaReading) *int { return &r.one.Reserved }),
	{
		Key: "total", Allowed: "a whole number, or none", Value: Custom(setTotal),
		Form: anyForm(Schema{"const": "none"}, wholeForm(bounds.MaxTokens)),
	},
	quotaNumber("burst", bounds.MaxTokens, func(r *quotaReading) *int { return &r.one.Burst }),
	{
		Key: "per", Allowed: "a duration such as 1m", Value: Duration(func(r *quotaReading) *time.Duration { return &r.one.Per }),
		Form: DurationForm(bounds.MinPer, bounds.MaxPer),
	},
	quotaNumber("weight", bounds.MaxWeight, func(r *quotaReading) *int { return &r.one.Weight }),
	quotaText("class", enumForm(limit.ClassInteractive, limit.ClassBatch), func(r *quotaReading) *string { return (*string)(&r.one.Class) }),
	quotaBlock("budgets", listForm(mostBudgets, budgetFields), func(r *quotaReading, n *yaml.Node) []BlockFault {
		return quotaList(n, "budgets", mostBudgets, budgetFields, func(of quotaReading) { r.one.Budgets = append(r.one.Budgets, of.budget) })
	}),
	{Key: "hard", Allowed: "true or false", Value: Bool(func(r *quotaReading) *bool { return &r.one.Hard })},
	{Key: "shadow", Allowed: "true or false", Value: Bool(func(r *quotaReading) *bool { return &r.one.Shadow })},
}

var budgetFields = []quotaSetting{
	{
		Key: "amount", Allowed: "a whole number such as 5000000 or 5e6", Value: Custom(setAmount),
		Form: anyForm(Schema{"type": "number", "minimum": 1, "maximum": bounds.MaxAmount},
			patternForm(`^[1-9][0-9]{0,18}(\.[0-9]{1,18})?([eE]\+?[0-9]{1,2})?$`)),
	},
	quotaText("per", enumForm(limit.PeriodHour, limit.PeriodDay, limit.PeriodMonth), func(r *quotaReading) *string { return (*string)(&r.budget.Per) }),
	quotaText("zone", patternForm("."), func(r *quotaReading) *string { return &r.budget.Zone }),
	quotaText("then", enumForm(limit.ThenRefuse, limit.ThenFallback, limit.ThenLower), func(r *quotaReading) *string { return (*string)(&r.budget.Then) }),
}

// setTotal reads 0 as a block of the tag, and none as no total.
func setTotal(r *quotaReading, text string) (ok bool) {
	q := &r.one.Quota
	q.Total, ok = WholeNumber(text)
	q.Blocked = ok && q.Total == 0
	return ok || text == "none"
}

var amountForm = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,18})(\.[0-9]{1,18})?([eE]\+?[0-9]{1,2})?$`)

// setAmount reads integers in the usual forms of large ones: 5000000, 5e6, 2.5e6.
func setAmount(r *quotaReading, text string) bool {
	if !amountForm.MatchString(text) {
		return false
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok || !value.IsInt() || !value.Num().IsInt64() || value.Num().Int64() == math.MinInt64 {
		return false
	}
	r.budget.Amount = value.Num().Int64()
	return true
}

func quotaNumber(key string, most int, at func(*quotaReading) *int) quotaSetting {
	return quotaSetting{Key: key, Allowed: "a whole number", Value: Int(at), Form: wholeForm(most)}
}

func quotaText(key string, form Schema, at func(*quotaReading) *string) quotaSetting {
	return quotaSetting{Key: key, Allowed: "a text", Value: Text(at), Form: form}
}

func quotaBlock(key string, form Schema, read func(*quotaReading, *yaml.Node) []BlockFault) quotaSetting {
	return quotaSetting{Key: key, Value: Block(read, nil), Form: form}
}

func anyForm(forms ...any) Schema { return Schema{"anyOf": forms} }

func patternForm(is string) Schema { return Schema{"type": "string", "pattern": is} }

func enumForm[T ~string](all ...T) Schema { return Schema{"enum": all} }

func wholeForm(most int) Schema {
	return anyForm(Schema{"type": "integer", "minimum": 0, "maximum": most}, patternForm("^[0-9]{1,10}$"))
}

func listForm(most int, fields []quotaSetting) Schema {
	return Schema{"type": []any{"array", "null"}, "maxItems": most, "items": MappingForm(fields)}
}

// quotaMapping reads a mapping, which may be nothing.
func quotaMapping(fields []quotaSetting, n *yaml.Node, name string, r *quotaReading) []BlockFault {
	if IsNull(n) {
		return nil
	}
	return Mapping(fields, n, name, r)
}

// quotaList reads a list of mappings, which may be nothing.
func quotaList(n *yaml.Node, name string, most int, fields []quotaSetting, add func(of quotaReading)) []BlockFault {
	return listItems(n, name, most, func(item *yaml.Node, name string) []BlockFault {
		var of quotaReading
		faults := quotaMapping(fields, item, name, &of)
		add(of)
		return faults
	})
}
