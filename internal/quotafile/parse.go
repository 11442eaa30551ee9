package quotafile

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// MaxText is the maximum length of a text for Parse, in bytes.
const MaxText = 1 << 20

// Bounds of the input: aliases make long lists of short texts. Validate has the real bounds.
const (
	mostTags     = 10_000
	mostPatterns = 1000
	mostBudgets  = 10
)

// A FaultError is one fault of a text, with its line: 0 for the whole text.
type FaultError struct {
	limit.FieldError

	Line int
}

// Error returns line, field, problem and the allowed values.
func (f *FaultError) Error() string {
	if f.Line == 0 {
		return f.FieldError.Error()
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.FieldError.Error())
}

// Parse reads quotas from YAML, which includes JSON. An empty text is no quotas, and {} are quotas without bounds; see Quotas.Given. It
// checks only the form: Quotas.Validate, which knows the limit, checks the ranges. The error joins a *FaultError for each fault.
func Parse(text []byte) (limit.Quotas, error) {
	if len(text) > MaxText {
		return limit.Quotas{}, &limit.FieldError{Field: root, Problem: fmt.Sprintf("is longer than %d bytes", MaxText)}
	}
	var q limit.Quotas
	n, fault := config.ParseYAML(text, root)
	faults := []config.BlockFault{}
	if fault != nil {
		faults = append(faults, *fault)
	} else if n != nil {
		q, faults = Decode(n)
	}
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = &FaultError{limit.FieldError{Field: f.Field, Problem: f.Problem, Allowed: f.Allowed}, f.Line}
	}
	return q, errors.Join(errs...)
}

// root begins the fields of faults.
const root = "quotas"

// Decode is Parse for a node of a larger text. Its faults have the lines of that text.
func Decode(n *yaml.Node) (limit.Quotas, []config.BlockFault) {
	var r reading
	if faults := config.Mapping(quotasFields, n, root, &r); len(faults) > 0 {
		return limit.Quotas{}, config.FirstFaults(faults, root)
	}
	if r.quotas.Tags == nil { // they were given, even if empty
		r.quotas.Tags = map[string]limit.Quota{}
	}
	return r.quotas, nil
}

// A reading is the quotas, or the quota or the budget in them, that is being read.
type reading struct {
	quotas limit.Quotas
	one    limit.QuotaPattern
	budget limit.Budget
}

type field = config.Field[*reading]

// quotasFields are the keys of quotas. Nothing (null) is an empty value of a key.
var quotasFields = []field{
	block("tags", config.Schema{"type": []any{"object", "null"}, "additionalProperties": config.MappingForm(quotaFields)}, readTags),
	block("match", listForm(limit.MaxPatterns, patternFields), func(r *reading, n *yaml.Node) []config.BlockFault {
		return list(n, "match", mostPatterns, patternFields, func(of reading) { r.quotas.Match = append(r.quotas.Match, of.one) })
	}),
	block("other", config.MappingForm(quotaFields), func(r *reading, n *yaml.Node) []config.BlockFault {
		var of reading
		faults := mapping(quotaFields, n, "other", &of)
		r.quotas.Other = of.one.Quota
		return faults
	}),
}

// Schema returns the JSON schema of quotas in a file: as a mapping, or as its text. Validate has the bounds that it repeats, and finds
// contradictions.
func Schema() config.Schema {
	quotas := config.MappingForm(quotasFields)
	quotas["type"] = "object" // nothing at all is empty
	return anyOf(quotas, pattern("[:{]"))
}

func readTags(r *reading, n *yaml.Node) (faults []config.BlockFault) {
	r.quotas.Tags = map[string]limit.Quota{}
	if config.IsNull(n) {
		return nil
	}
	entries, faults := config.Entries(n, "tags", mostTags, "a mapping from tags to quotas")
	for _, e := range entries {
		if len(faults) > config.MaxFaults {
			break
		}
		var of reading
		faults = append(faults, mapping(quotaFields, e.Value, config.Within("tags", e.Name), &of)...)
		r.quotas.Tags[e.Name] = of.one.Quota
	}
	return faults
}

// quotaFields are the keys of a quota.
var quotaFields = []field{
	number("reserved", limit.MaxTokens, func(r *reading) *int { return &r.one.Reserved }),
	{
		Key: "total", Allowed: "a whole number, or none", Value: config.Custom(setTotal),
		Form: anyOf(config.Schema{"const": "none"}, whole(limit.MaxTokens)),
	},
	number("burst", limit.MaxTokens, func(r *reading) *int { return &r.one.Burst }),
	{
		Key: "per", Allowed: "a duration such as 1m", Value: config.Duration(func(r *reading) *time.Duration { return &r.one.Per }),
		Form: config.DurationForm(limit.MinPer, limit.MaxPer),
	},
	number("weight", limit.MaxWeight, func(r *reading) *int { return &r.one.Weight }),
	text("class", words(limit.Interactive, limit.Batch), func(r *reading) *string { return (*string)(&r.one.Class) }),
	block("budgets", listForm(mostBudgets, budgetFields), func(r *reading, n *yaml.Node) []config.BlockFault {
		return list(n, "budgets", mostBudgets, budgetFields, func(of reading) { r.one.Budgets = append(r.one.Budgets, of.budget) })
	}),
	{Key: "hard", Allowed: "true or false", Value: config.Bool(func(r *reading) *bool { return &r.one.Hard })},
	{Key: "shadow", Allowed: "true or false", Value: config.Bool(func(r *reading) *bool { return &r.one.Shadow })},
}

var patternFields = append(slices.Clone(quotaFields),
	text("tag", config.Schema{"type": []any{"string", "number", "boolean"}, "minLength": 1}, func(r *reading) *string { return &r.one.Tag }))

var budgetFields = []field{
	{
		Key: "amount", Allowed: "a whole number such as 5000000 or 5e6", Value: config.Custom(setAmount),
		Form: anyOf(config.Schema{"type": "number", "minimum": 1, "maximum": limit.MaxAmount},
			pattern(`^[1-9][0-9]{0,18}(\.[0-9]{1,18})?([eE]\+?[0-9]{1,2})?$`)),
	},
	text("per", words(limit.Hour, limit.Day, limit.Month), func(r *reading) *string { return (*string)(&r.budget.Per) }),
	text("zone", pattern("."), func(r *reading) *string { return &r.budget.Zone }),
	text("then", words(limit.Refuse, limit.Fallback, limit.Lower), func(r *reading) *string { return (*string)(&r.budget.Then) }),
}

// setTotal reads 0 as a block of the tag, and none as no total.
func setTotal(r *reading, text string) (ok bool) {
	q := &r.one.Quota
	q.Total, ok = config.WholeNumber(text)
	q.Blocked = ok && q.Total == 0
	return ok || text == "none"
}

var amountForm = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,18})(\.[0-9]{1,18})?([eE]\+?[0-9]{1,2})?$`)

// setAmount reads integers in the usual forms of large ones: 5000000, 5e6, 2.5e6.
func setAmount(r *reading, text string) bool {
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

func number(key string, most int, at func(*reading) *int) field {
	return field{Key: key, Allowed: "a whole number", Value: config.Int(at), Form: whole(most)}
}

func text(key string, form config.Schema, at func(*reading) *string) field {
	return field{Key: key, Allowed: "a text", Value: config.Text(at), Form: form}
}

func block(key string, form config.Schema, read func(*reading, *yaml.Node) []config.BlockFault) field {
	return field{Key: key, Value: config.Block(read, nil), Form: form}
}

func anyOf(forms ...any) config.Schema { return config.Schema{"anyOf": forms} }

func pattern(is string) config.Schema { return config.Schema{"type": "string", "pattern": is} }

func words[T ~string](all ...T) config.Schema { return config.Schema{"enum": all} }

func whole(most int) config.Schema {
	return anyOf(config.Schema{"type": "integer", "minimum": 0, "maximum": most}, pattern("^[0-9]{1,10}$"))
}

func listForm(most int, fields []field) config.Schema {
	return config.Schema{"type": []any{"array", "null"}, "maxItems": most, "items": config.MappingForm(fields)}
}

// mapping reads a mapping, which may be nothing.
func mapping(fields []field, n *yaml.Node, name string, r *reading) []config.BlockFault {
	if config.IsNull(n) {
		return nil
	}
	return config.Mapping(fields, n, name, r)
}

// list reads a list of mappings, which may be nothing.
func list(n *yaml.Node, name string, most int, fields []field, add func(of reading)) []config.BlockFault {
	return config.List(n, name, most, func(item *yaml.Node, name string) []config.BlockFault {
		var of reading
		faults := mapping(fields, item, name, &of)
		add(of)
		return faults
	})
}
