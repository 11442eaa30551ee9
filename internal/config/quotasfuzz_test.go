package config

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What is read without a fault means the same when it is written as JSON and read anew; every fault is a line that can be
// printed; and nothing that a text says makes Validate or the questions to quotas fail.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "tags: {a: {reserved: 1, total: 2, per: 1m, hard: true}}", "match: [{tag: 'free/*', burst: 3, total: 10}]",
		"other: {budgets: [{amount: 5e6, per: day, zone: Europe/Berlin, then: batch}], class: batch, weight: 2, shadow: true}",
		"a: &a {b: *a}", "tags: &t {a: *t}", "other: !!map {}", "? {}\n: {}", "tags: {<<: {a: {}}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		q, err := ParseQuotas(text)
		if err != nil {
			require.True(t, utf8.ValidString(err.Error()), "%q", err.Error())
			require.Less(t, len(err.Error()), 200_000)
			return
		}
		wrong := q.Validate(1000, time.Second)
		if wrong != nil {
			require.True(t, utf8.ValidString(wrong.Error()), "%q", wrong.Error())
		}
		q.Find(string(text))
		encoded, err := json.Marshal(q)
		require.NoError(t, err)
		if wrong != nil || !q.Given() { // a name that is no text becomes another one in JSON
			return
		}
		back, err := ParseQuotas(encoded)
		require.NoError(t, err)
		require.Equal(t, q.WithDefaults(time.Second), back.WithDefaults(time.Second))
		for _, one := range q.Tags {
			total, per, burst := one.WithDefaults(time.Second).Enforced()
			require.True(t, total >= 0 && per > 0 && burst >= 0 && (total > 0) == (one.Total > 0), "%+v", one)
		}
	})
}
