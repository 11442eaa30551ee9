package throttle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An All has statuses if each shows what a draw would get.
func TestAllStatuses(t *testing.T) {
	a, b := whole(t, Limit{Max: 100}, WithName("a")), whole(t, Limit{Max: 10}, WithName("b"), WithQuotas(tagsOf(map[string]Quota{"x": {}})))
	for name, tc := range map[string]struct {
		l    Limiter
		want []string
	}{
		"limits":           {All(a, b), []string{"a", "b"}},
		"of a tag":         {ForTags(All(a, b), "x"), []string{"a", "b"}},
		"weighed":          {All(a, PerCall(b)), nil},
		"slots":            {All(a, flight(t, 1)), nil},
		"of other package": {All(a, hidden{b}), nil},
	} {
		var names []string
		for _, st := range as[interface{ Statuses() []Status }](t, tc.l).Statuses() {
			names = append(names, st.Name)
		}
		require.Equal(t, tc.want, names, name)
	}
}

// An All remembers the limiters of so many tags, but of no name that may get a tag of its own yet.
func TestAllRemembersTags(t *testing.T) {
	th := quotaed(t, Limit{Max: 1000}, Quotas{Tags: map[string]Quota{"known": {}}, Match: []QuotaPattern{{Tag: "x/*", Quota: Quota{Total: 10}}}})
	all := as[Tagger](t, All(th, whole(t, Limit{Max: 1000})))
	same := func(tag string) bool { return all.ForTag(tag) == all.ForTag(tag) }
	require.True(t, same("known"))
	require.False(t, same(strings.Repeat("x", 65)), "it is too long for a name")
	for i := range maxNames - 1 {
		require.True(t, same(fmt.Sprint("x/", i)))
	}
	require.False(t, same("x/last"), "there are enough")
	require.True(t, same("known"))
	rateHolder{th}.SetQuotas(*th.quotas)
	require.True(t, same("x/last"), "a change of quotas begins anew")
}
