package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// This file reads quotas of programs with several limits. A tag's quota names the limits by their settings: a number is a total, a mapping a
// quota. Fields beside these are the quota of the main limit, as in the quotas of a single one.

// A QuotaLimit is a limit that quotas may name, by its setting. Read reads a value that is no quota; nil: it is one. Form is its schema then.
type QuotaLimit struct {
	Key  string
	Read func(n *yaml.Node, name string) (limit.Quota, []BlockFault)
	Form Schema
}

// ReadManyQuotas reads quotas of the main limit, and of others that they name. Where a block names a limit, all of its tags and patterns are
// among the quotas of that, because they are not others there. main is not given if the block has only quotas of named limits.
func ReadManyQuotas(n *yaml.Node, limits []QuotaLimit) (main limit.Quotas, of map[string]limit.Quotas, faults []BlockFault) {
	var r quotaReading
	if faults := Mapping(quotasFieldsOf(withLimits(limits)), n, quotasKey, &r); len(faults) > 0 {
		return limit.Quotas{}, nil, firstFaults(faults, quotasKey)
	}
	of, main = r.byLimit(limits), r.main()
	if len(of) > 0 && !r.hasMain() {
		main = limit.Quotas{}
	}
	return main, of, nil
}

// ManyQuotasForm is QuotasForm for quotas that name limits.
func ManyQuotasForm(limits []QuotaLimit) Schema {
	return quotasForm(quotasFieldsOf(withLimits(limits)))
}

// withLimits returns the keys of a quota that may name limits.
func withLimits(limits []QuotaLimit) []quotaSetting {
	fields := slices.Clone(quotaFields)
	for _, l := range limits {
		read, form := l.Read, l.Form
		if read == nil {
			read, form = readAmount, anyForm(Schema{"const": "none"}, wholeForm(mostAmount), MappingForm(quotaFields))
		}
		fields = append(fields, quotaBlock(l.Key, form, func(r *quotaReading, n *yaml.Node) []BlockFault {
			q, faults := read(n, l.Key)
			if r.of == nil {
				r.of = map[string]limit.Quota{}
			}
			r.of[l.Key] = q
			return faults
		}))
	}
	return fields
}

const mostAmount = 1_000_000_000

// readAmount reads the quota of a limit: a total, or a mapping.
func readAmount(n *yaml.Node, name string) (limit.Quota, []BlockFault) {
	var r quotaReading
	if n = behindAlias(n); n.Kind == yaml.ScalarNode && !IsNull(n) {
		if !setTotal(&r, n.Value) || r.one.Total < 0 || r.one.Total > mostAmount {
			return limit.Quota{}, []BlockFault{{name, fmt.Sprintf("is %.60q", n.Value), "a whole number up to 1000000000, none, or a quota", n.Line}}
		}
		return r.one.Quota, nil
	}
	faults := quotaMapping(quotaFields, n, name, &r)
	return r.one.Quota, faults
}

// byLimit returns the quotas of each limit that is named.
func (r *quotaReading) byLimit(limits []QuotaLimit) map[string]limit.Quotas {
	all := map[string]limit.Quotas{}
	for _, l := range limits {
		named := func(of map[string]limit.Quota) bool { _, ok := of[l.Key]; return ok }
		if !named(r.other) && !slices.ContainsFunc(r.match, named) && !slices.ContainsFunc(slices.Collect(maps.Values(r.tags)), named) {
			continue
		}
		q := limit.Quotas{Tags: map[string]limit.Quota{}, Other: r.other[l.Key]}
		for tag := range r.tags {
			q.Tags[tag] = r.tags[tag][l.Key]
		}
		for i := range r.match {
			q.Match = append(q.Match, limit.QuotaPattern{Tag: r.quotas.Match[i].Tag, Quota: r.match[i][l.Key]})
		}
		all[l.Key] = q
	}
	return all
}

// hasMain reports whether a quota of the main limit is given, even an empty one.
func (r *quotaReading) hasMain() bool {
	given := func(q limit.Quota, of map[string]limit.Quota) bool {
		return len(of) == 0 || !reflect.DeepEqual(q, limit.Quota{})
	}
	if !reflect.DeepEqual(r.quotas.Other, limit.Quota{}) {
		return true
	}
	for tag, q := range r.quotas.Tags {
		if given(q, r.tags[tag]) {
			return true
		}
	}
	for i, p := range r.quotas.Match {
		if given(p.Quota, r.match[i]) {
			return true
		}
	}
	return false
}
