package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An All goes by quotas that have changed, also for a tag that it knows.
func TestAnAllGoesByChangedQuotas(t *testing.T) {
	quotas := func(total int) Quotas {
		q := Quotas{Tags: map[string]Quota{"kept": {Total: 5, Burst: 5}}}
		if total > 0 {
			q.Tags["acme"] = Quota{Total: total, Burst: total}
		}
		return q.WithDefaults(time.Second)
	}
	rpm, err := New(Limit{Max: 1000, Per: time.Second}, WithQuotas(quotas(0)))
	require.NoError(t, err)
	tpm, err := New(Limit{Max: 1000, Per: time.Second})
	require.NoError(t, err)
	defer func() { require.NoError(t, rpm.Close()); require.NoError(t, tpm.Close()) }()
	all := All(rpm, tpm).(Tagger) //nolint:forcetypeassert,errcheck // it is one
	total := func() int {
		for _, c := range all.ForTag("acme").(*multi).children { //nolint:forcetypeassert,errcheck // it is one
			if s, ok := c.native.(stockChild); ok {
				return s.quota().Total
			}
		}
		return -1
	}
	require.Zero(t, total())
	rateHolder{rpm}.SetQuotas(quotas(7))
	require.Equal(t, 7, total())
	known := all.ForTag("acme")
	require.Same(t, known, all.ForTag("acme"))
	rateHolder{rpm}.SetQuotas(quotas(0))
	require.Zero(t, total())
	rateHolder{rpm}.SetQuotas(quotas(3))
	require.Equal(t, 3, total())
}
