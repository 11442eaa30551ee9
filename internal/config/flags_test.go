package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	names := map[string]string{}
	for i := range table {
		if name, ok := table[i].Flag(); ok {
			names[table[i].Key] = name
		}
	}
	require.Equal(t, map[string]string{
		"max": "max", "per": "per", "onStoreLoss": "on-store-loss", "pool": "pool", "failFast": "fail-fast", "store": "store", "storeCAFile": "store-ca-file",
	}, names, "no secret")

	s := settings{Max: 5}
	require.Empty(t, LoadFlags(table, map[string]string{"per": "2s", "store": "redis://u:" + canary + "@h"}, &s))
	require.Equal(t, 2*time.Second, s.Per)
	require.Equal(t, 5, s.Max, "what is not given stays")

	var lines []string
	for _, fault := range LoadFlags(table, map[string]string{
		"max": "101", "failFast": "yes", "storePassword": canary, "nonsense": "x", "pool": "",
	}, &s) {
		require.NotContains(t, fault.Error(), canary)
		lines = append(lines, fault.Error())
	}
	require.Equal(t, []string{
		`numathrottle: failFast is "yes" (--fail-fast), allowed: true or false`,
		`numathrottle: max is "101" (--max), allowed: 0 to 100`,
		`numathrottle: nonsense is not a setting that a flag can have (--nonsense)`,
		`numathrottle: pool is empty (--pool), allowed: a text; leave it out for the default`,
		`numathrottle: storePassword is not a setting that a flag can have (--store-password)`,
	}, lines)
	require.Equal(t, 5, s.Max)

	lifted := Lift(table, func(p *program) *settings { return &p.Inner })
	for i := range lifted {
		_, before := table[i].Flag()
		_, after := lifted[i].Flag()
		require.Equal(t, before, after, lifted[i].Key)
	}
}

func TestReplaceTable(t *testing.T) {
	page, err := ReplaceTable("a\n<!-- x: by hand -->\nold\n<!-- end -->\nb", "x", "new\n")
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- x: by hand -->\nnew\n<!-- end -->\nb", page)
	_, err = ReplaceTable("a", "x", "new\n")
	require.EqualError(t, err, `no table "x", allowed: a line <!-- x: ... -->`)
	_, err = ReplaceTable("<!-- x: -->\n", "x", "new\n")
	require.EqualError(t, err, `table "x" has no end, allowed: <!-- end --> behind it`)
}
