package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

func TestParse(t *testing.T) {
	q, err := ParseQuotas([]byte(`
tags:
  acme: &acme {reserved: 200, total: 400, class: interactive, budgets: [{amount: 5e6, per: day, zone: Europe/Berlin, then: batch}]}
  beta: *acme
  plain:
  "12": {total: 5, burst: 3, per: 1m30s, weight: 7, hard: true, shadow: false}
match: [{tag: "free/*", total: 10, per: 1m, class: batch, weight: 1}]
other:
  total: 50
`))
	require.NoError(t, err)
	acme := limit.Quota{
		Reserved: 200, Total: 400, Class: limit.ClassInteractive,
		Budgets: []limit.Budget{{Amount: 5e6, Per: limit.PeriodDay, Zone: "Europe/Berlin", Then: limit.ThenLower}},
	}
	require.Equal(t, limit.Quotas{
		Tags: map[string]limit.Quota{
			"acme": acme, "beta": acme, "plain": {}, "12": {Total: 5, Burst: 3, Per: 90 * time.Second, Weight: 7, Hard: true},
		},
		Match: []limit.QuotaPattern{{Tag: "free/*", Quota: limit.Quota{Total: 10, Per: time.Minute, Class: limit.ClassBatch, Weight: 1}}},
		Other: limit.Quota{Total: 50},
	}, q)

	// What is written as JSON is read as YAML.
	text, err := json.Marshal(q)
	require.NoError(t, err)
	back, err := ParseQuotas(text)
	require.NoError(t, err)
	require.Equal(t, q, back)

	for _, empty := range []string{"", "# nothing\n", "null", "tags:\nmatch:\nother:\n", "{}"} {
		q, err := ParseQuotas([]byte(empty))
		require.NoError(t, err, "%q", empty)
		require.True(t, q.None(), "%q", empty)
	}
}

const keysOfQuota = "reserved, total, burst, per, weight, class, budgets, hard, shadow"

// All faults at once, each with its line.
func TestParseFaults(t *testing.T) {
	_, err := ParseQuotas([]byte(`tags:
  acme:
    reservd: 1
    total: 1.5
    burst: 010
    per: 60
    weight:
    hard: yes
    total: 3
  beta: 5
  "a b": {class: [x]}
  acme: {}
match:
  free: {total: 1}
other: [1]
defaults: {}
`))
	require.Equal(t, []string{
		`line 3: quotas.tags.acme.reservd is not a setting; did you mean reserved?, allowed: one of ` + keysOfQuota,
		`line 4: quotas.tags.acme.total is "1.5", allowed: a whole number, or none`,
		`line 5: quotas.tags.acme.burst is "010", allowed: a whole number`,
		`line 6: quotas.tags.acme.per is "60"; did you mean 60s?, allowed: a duration such as 1m`,
		`line 7: quotas.tags.acme.weight is empty, allowed: a whole number; leave it out for the default`,
		`line 8: quotas.tags.acme.hard is "yes", allowed: true or false`,
		`line 9: quotas.tags.acme.total is given twice, first in line 4`,
		`line 10: quotas.tags.beta is a single value, allowed: a mapping with ` + keysOfQuota,
		`line 11: quotas.tags."a b".class is a list, allowed: a text`,
		`line 12: quotas.tags.acme is given twice, first in line 2`,
		`line 14: quotas.match is a mapping, allowed: a list`,
		`line 15: quotas.other is a list, allowed: a mapping with ` + keysOfQuota,
		`line 16: quotas.defaults is not a setting, allowed: one of tags, match, other`,
	}, strings.Split(err.Error(), "\n"))

	for text, want := range map[string]string{
		"a: [":                                 `quotas is not valid YAML: line 1: did not find expected node content`,
		"{}\n---\n{}":                          `line 2: quotas holds a second document, allowed: one`,
		"5":                                    `line 1: quotas is a single value, allowed: a mapping with tags, match, other`,
		"other: !x {}":                         `line 1: quotas.other is of a type of its own (!name), allowed: a mapping with ` + keysOfQuota,
		"? [a]\n: 1":                           `line 1: quotas has a name that is a list, allowed: a text`,
		"other: {budgets: [{amount: 1.5}]}":    `line 1: quotas.other.budgets[0].amount is "1.5", allowed: a whole number such as 5000000 or 5e6`,
		"other: {total: 99999999999999999999}": `line 1: quotas.other.total is "99999999999999999999", allowed: a whole number, or none`,
		strings.Repeat(" ", MaxQuotas+1):       `quotas is longer than 1048576 bytes`,
		"other: {budgets: [1,2,3,4,5,6,7,8,9,10,11]}": `line 1: quotas.other.budgets has 11 items, allowed: at most 10`,
	} {
		_, err := ParseQuotas([]byte(text))
		require.EqualError(t, err, want)
	}
	_, err = ParseQuotas([]byte(strings.Repeat("- x\n", 3)))
	require.ErrorContains(t, err, "quotas is a list")
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "5e6": 5_000_000, "2.5e6": 2_500_000, "1E+15": 1e15, "1.0": 1, "-3": -3, "0": 0} {
		var r quotaReading
		require.True(t, setAmount(&r, text), text)
		require.Equal(t, want, r.budget.Amount, text)
	}
	for _, text := range []string{"", "1.5", "5e-1", "1e99", "010", "1_000", "0x10", "1e999999999", "9223372036854775808", ".inf", "2.55e1"} {
		require.False(t, setAmount(&quotaReading{}, text), text)
	}
}

// A quotaText of many faults tells the first hundred, and a list of aliases costs no more than a list.
func TestParseMuch(t *testing.T) {
	_, err := ParseQuotas([]byte("tags: {" + strings.Repeat("\n a: 1,", 500) + "}"))
	require.Len(t, strings.Split(err.Error(), "\n"), maxFaults+1)
	require.ErrorContains(t, err, "quotas has more faults")

	var b strings.Builder
	b.WriteString("other: {budgets: &b [" + strings.Repeat("{amount: 1},", 50_000) + "]}\nmatch:\n")
	for range 1000 {
		b.WriteString("- {budgets: *b}\n")
	}
	_, err = ParseQuotas([]byte(b.String()))
	require.ErrorContains(t, err, "quotas.other.budgets has 50000 items, allowed: at most 10")
}

// A total of 0 blocks the tag, and none is no total.
func TestTotals(t *testing.T) {
	q, err := ParseQuotas([]byte(`tags: {a: {total: 0}, b: {total: none}, c: {total: 1}, d: {}}`))
	require.NoError(t, err)
	require.Equal(t, map[string]limit.Quota{"a": {Blocked: true}, "b": {}, "c": {Total: 1}, "d": {}}, q.Tags)
	for _, wrong := range []string{"-0", "00", "None", "~", "''"} {
		_, err := ParseQuotas([]byte("other: {total: " + wrong + "}"))
		require.Error(t, err, wrong)
	}
}
