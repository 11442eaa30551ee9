package scenario

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Quotas are those of the indented lines: a tag, a pattern or other, and fields of Quota; budget=3/hour/batch.
func (o *Order) Quotas() limit.Quotas {
	q := limit.Quotas{Tags: map[string]limit.Quota{}}
	for line := range strings.Lines(o.More) {
		of := NewOrder(o.T, o.Line, line)
		name, quota := of.Word(""), of.Quota()
		switch {
		case name == "other":
			q.Other = quota
		case strings.Contains(name, "*"):
			q.Match = append(q.Match, limit.QuotaPattern{Tag: name, Quota: quota})
		default:
			q.Tags[name] = quota
		}
		require.Zero(o.T, len(of.Set)+len(of.Words), "%s: %s", o.Line, line)
	}
	return q
}

// Quota takes the settings of a quota.
func (o *Order) Quota() (q limit.Quota) {
	if parts := append(strings.Split(o.Value("budget"), "/"), ""); len(parts) > 2 {
		q.Budgets = []limit.Budget{{Amount: int64(o.Number(parts[0])), Per: limit.Period(parts[1]), Then: limit.Then(parts[2])}}
	}
	o.Fill(&q, nil)
	return q
}
