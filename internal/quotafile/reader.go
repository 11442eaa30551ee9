package quotafile

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A reader collects the faults of the nodes that it reads.
type reader struct{ faults []*FaultError }

func (r *reader) bad(n *yaml.Node, field, problem, allowed string) {
	r.faults = append(r.faults, &FaultError{limit.FieldError{Field: field, Problem: problem, Allowed: allowed}, n.Line})
}

// A form reads the value of a key: field is its full name.
type form func(n *yaml.Node, field string)

// mapping reads the keys of a mapping by their forms. Nothing (null) is an empty mapping.
func (r *reader) mapping(n *yaml.Node, field string, forms map[string]form) {
	known := make([]string, 0, len(forms))
	for key := range forms {
		known = append(known, key)
	}
	slices.Sort(known)
	r.pairs(n, field, "a mapping with "+strings.Join(known, ", "), func(key, value *yaml.Node) {
		if read, ok := forms[key.Value]; ok {
			read(value, field+"."+key.Value)
		} else {
			r.bad(key, field+"."+shown(key.Value), "is not a setting", "one of "+strings.Join(known, ", "))
		}
	})
}

// pairs calls read for each key of a mapping, and rejects duplicates.
func (r *reader) pairs(n *yaml.Node, field, allowed string, read func(key, value *yaml.Node)) {
	n = target(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode || !untagged(n) {
		r.bad(n, field, "is "+kindName(n), allowed)
		return
	}
	if len(n.Content)/2 > mostTags {
		r.bad(n, field, fmt.Sprintf("has %d keys", len(n.Content)/2), fmt.Sprintf("at most %d", mostTags))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content) && len(r.faults) <= maxFaults; i += 2 {
		key := target(n.Content[i])
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || !untagged(key) {
			r.bad(key, field, "has a key that is "+kindName(key), "a text")
			continue
		}
		if line, twice := lines[key.Value]; twice {
			r.bad(key, field+"."+shown(key.Value), fmt.Sprintf("is given twice, first in line %d", line), "")
			continue
		}
		lines[key.Value] = key.Line
		read(key, n.Content[i+1])
	}
}

// Bounds of the input: aliases make long lists of short texts. Validate has the real bounds.
const (
	mostTags     = 10_000
	mostPatterns = 1000
	mostBudgets  = 10
)

// list calls read for each item of a list.
func (r *reader) list(n *yaml.Node, field string, most int, read form) {
	n = target(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode || !untagged(n) {
		r.bad(n, field, "is "+kindName(n), "a list")
		return
	}
	if len(n.Content) > most {
		r.bad(n, field, fmt.Sprintf("has %d items", len(n.Content)), fmt.Sprintf("at most %d", most))
		return
	}
	for i, item := range n.Content {
		if len(r.faults) > maxFaults {
			return
		}
		read(item, fmt.Sprintf("%s[%d]", field, i))
	}
}

// scalar reads a single value other than null.
func (r *reader) scalar(n *yaml.Node, field, allowed string, read func(text string) bool) {
	n = target(n)
	switch {
	case n.Kind != yaml.ScalarNode || !untagged(n):
		r.bad(n, field, "is "+kindName(n), allowed)
	case n.ShortTag() == "!!null" || n.Value == "":
		r.bad(n, field, "is empty", allowed+"; leave it out for the default")
	case !read(n.Value):
		r.bad(n, field, "is "+quoted(n.Value)+meant(n.Value, allowed), allowed)
	}
}

func (r *reader) text(at func(text string)) form {
	return func(n *yaml.Node, field string) {
		r.scalar(n, field, "a text", func(text string) bool { at(text); return true })
	}
}

func (r *reader) number(at *int) form {
	return func(n *yaml.Node, field string) {
		r.scalar(n, field, "a whole number", func(text string) bool {
			value, err := strconv.Atoi(text) // 010 is eight to some, and 1_000 a thousand
			*at = value
			return err == nil && strconv.Itoa(value) == text
		})
	}
}

// total reads 0 as a block of the tag, and none as no total.
func (r *reader) total(q *limit.Quota) form {
	return func(n *yaml.Node, field string) {
		r.scalar(n, field, "a whole number, or none", func(text string) bool {
			if text == "none" {
				q.Total, q.Blocked = 0, false
				return true
			}
			value, err := strconv.Atoi(text)
			q.Total, q.Blocked = value, value == 0
			return err == nil && strconv.Itoa(value) == text
		})
	}
}

// amount reads integers in the usual forms of large ones: 5000000, 5e6, 2.5e6.
func (r *reader) amount(at *int64) form {
	return func(n *yaml.Node, field string) {
		r.scalar(n, field, "a whole number such as 5000000 or 5e6", func(text string) bool {
			value, ok := parseAmount(text)
			*at = value
			return ok
		})
	}
}

var amountForm = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,18})(\.[0-9]{1,18})?([eE]\+?[0-9]{1,2})?$`)

func parseAmount(text string) (int64, bool) {
	if !amountForm.MatchString(text) {
		return 0, false
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok || !value.IsInt() || !value.Num().IsInt64() || value.Num().Int64() == math.MinInt64 {
		return 0, false
	}
	return value.Num().Int64(), true
}

const aDuration = "a duration such as 1m"

// meant suggests the intended value of a text.
func meant(text, allowed string) string {
	if allowed == aDuration {
		return config.DurationHint(text)
	}
	return ""
}

func (r *reader) duration(at *time.Duration) form {
	return func(n *yaml.Node, field string) {
		r.scalar(n, field, aDuration, func(text string) bool {
			value, err := time.ParseDuration(text)
			*at = value
			return err == nil && value > 0
		})
	}
}

func (r *reader) boolean(at *bool) form {
	return func(n *yaml.Node, field string) {
		r.scalar(n, field, "true or false", func(text string) bool {
			*at = text == "true"
			return text == "true" || text == "false"
		})
	}
}

func (r *reader) quotas(n *yaml.Node) (q limit.Quotas) {
	r.mapping(n, root, map[string]form{
		"tags": func(n *yaml.Node, field string) {
			q.Tags = map[string]limit.Quota{}
			r.pairs(n, field, "a mapping from tags to quotas", func(key, value *yaml.Node) {
				var one limit.Quota
				r.mapping(value, field+"."+shown(key.Value), r.quota(&one))
				q.Tags[key.Value] = one
			})
		},
		"match": func(n *yaml.Node, field string) {
			r.list(n, field, mostPatterns, func(n *yaml.Node, field string) {
				var p limit.QuotaPattern
				forms := r.quota(&p.Quota)
				forms["tag"] = r.text(func(text string) { p.Tag = text })
				r.mapping(n, field, forms)
				q.Match = append(q.Match, p)
			})
		},
		"other": func(n *yaml.Node, field string) { r.mapping(n, field, r.quota(&q.Other)) },
	})
	if q.Tags == nil { // they were given, even if empty
		q.Tags = map[string]limit.Quota{}
	}
	return q
}

func (r *reader) quota(q *limit.Quota) map[string]form {
	return map[string]form{
		"reserved": r.number(&q.Reserved), "total": r.total(q), "burst": r.number(&q.Burst), "weight": r.number(&q.Weight),
		"per": r.duration(&q.Per), "hard": r.boolean(&q.Hard), "shadow": r.boolean(&q.Shadow),
		"class": r.text(func(text string) { q.Class = limit.Class(text) }),
		"budgets": func(n *yaml.Node, field string) {
			r.list(n, field, mostBudgets, func(n *yaml.Node, field string) {
				var b limit.Budget
				r.mapping(n, field, map[string]form{
					"amount": r.amount(&b.Amount),
					"per":    r.text(func(text string) { b.Per = limit.Period(text) }),
					"zone":   r.text(func(text string) { b.Zone = text }),
					"then":   r.text(func(text string) { b.Then = limit.Then(text) }),
				})
				q.Budgets = append(q.Budgets, b)
			})
		},
	}
}

// target is the node that an alias stands for.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// untagged reports whether a node has no tag of its own (!name).
func untagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle == 0 }

func kindName(n *yaml.Node) string {
	switch {
	case !untagged(n):
		return "of a type of its own (!name)"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}

// plainName matches names that need no quotes in a field.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_/-]{1,64}$`)

func shown(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return quoted(name)
}

func quoted(text string) string {
	const longest = 60
	if len(text) > longest {
		return fmt.Sprintf("%.*q...", longest, text)
	}
	return strconv.Quote(text)
}
