package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// The line of a tag's report begins with the first call that has no tokens, and asks for as many calls as the rate serves until the next
// report. keep is 250 ms there, so that a rate of 12 is 4 tokens.
func TestTagLineBeginsBehindCallsWithTokens(t *testing.T) {
	for what, c := range map[string]struct {
		calls        []int
		hand, coming int64
		rate         float64
		limiting     bool
		head, line   int64
		rest         int64 // in hand for no call
		more         bool
	}{
		"nothing in hand":                 {calls: []int{3, 4, 5}, head: 3, line: 3, more: true},
		"the rate is one call":            {calls: []int{3, 4, 5}, rate: 9, head: 3, line: 3, more: true},
		"the rate is less than two calls": {calls: []int{3, 4, 5}, rate: 12, head: 3, line: 7, more: true},
		"the first one comes":             {calls: []int{3, 4, 5}, coming: 5, head: 3, line: 9, more: true},
		"the first one has its tokens":    {calls: []int{3, 4, 5}, hand: 3, head: 4, line: 4, more: true},
		"two have theirs":                 {calls: []int{3, 4, 5}, hand: 8, head: 5, line: 5, rest: 1},
		"all have theirs":                 {calls: []int{3, 4, 5}, hand: 12, rest: 12},
		"a small call waits for its turn": {calls: []int{3, 1}, hand: 1, rate: 12, head: 3, line: 4, rest: 1},
		"the service is slow":             {calls: []int{3, 4}, hand: 3, limiting: true, rest: 3},
		"the first one is slow":           {calls: []int{3, 4}, limiting: true, head: 3, line: 3, more: true},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, _ := scripted(t, Limit{Max: 1000}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {Total: 1000}})))
				for _, n := range c.calls {
					beginWith(th.ForTag("a").Acquire, n, 0)
				}
				g := viewOf(th.ForTag("a")).first()
				g.mu.Lock()
				defer g.mu.Unlock() // so that a call with tokens stays in the queue
				r := sharing.TagReport{InHand: c.hand}
				if c.limiting {
					r.Limiting = 1
				}
				g.grant.Coming, g.grant.Rate = c.coming, c.rate
				g.line(250*time.Millisecond, &r)
				require.Equal(t, sharing.TagReport{InHand: c.rest, Limiting: r.Limiting, Head: c.head, Line: c.line, More: c.more}, r)
			})
		})
	}
}

// A name of a pattern takes no place among the tags before it has tokens or is used.
func TestTagGrantOfNothingMakesNoTag(t *testing.T) {
	q := Quotas{Tags: map[string]Quota{"a": {Total: 10}}, Match: []QuotaPattern{{Tag: "x/*", Quota: Quota{Total: 10}}}}
	th, s := scripted(t, Limit{Max: 1000}, 1, WithQuotas(q))
	s.h.GrantTags([]sharing.TagGrant{{Tag: "a"}, {Tag: "x/none"}, batch("x/some", 1, time.Minute)})
	require.True(t, th.tags.knows("a"))
	require.True(t, th.tags.knows("x/some"))
	require.False(t, th.tags.knows("x/none"))
}

// The status has the tags that were used, refused or waited for, or have spent of a budget: no tag that was only looked for.
func TestTagStatusHasTagsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := tagsOf(map[string]Quota{"used": {}, "refused": {Total: 1}, "waits": {Total: 1}, "spent": {Budgets: []Budget{{Amount: 9, Per: "day"}}}, "idle": {}})
		th, s := scripted(t, Limit{Max: 1000, Burst: 10}, 1, WithQuotas(q))
		time.Sleep(time.Second)
		s.h.GrantTags([]sharing.TagGrant{{Tag: "spent", Spent: 1, Budget: 9}})
		take(t, th.ForTag("used"), 1)
		deny(t, th.ForTag("refused"), 1)
		th.ForTag("idle")
		beginWith(th.ForTag("waits").Acquire, 1, 0)
		var names []string
		for _, st := range th.Status().Tags {
			names = append(names, st.Tag)
		}
		require.Equal(t, []string{"refused", "spent", "used", "waits"}, names)
	})
}

// The limit's refusals within a second are compared with those of its tags, whatever their reason.
func TestTagRefusalsBesideThoseOfTheLimit(t *testing.T) {
	s := quotaed(t, Limit{Max: 10}, tagsOf(map[string]Quota{"a": {}})).tags
	for r, n := range map[Reason]int{ReasonLimit: 1, ReasonAdaptive: 2, ReasonClass: 4, ReasonQuota: 8} {
		for range n {
			s.t.gate.Waits.CountRefusal(r)
		}
	}
	s.lookLimited(0)
	require.EqualValues(t, 7, s.limited.Load())
	s.lookLimited(0)
	require.Zero(t, s.limited.Load())
}

// TagWaitStats names the tags that were held back.
func TestTagWaitStatsOfTagsHeldBack(t *testing.T) {
	th := quotaed(t, Limit{Max: 10}, tagsOf(map[string]Quota{"a": {}, "b": {}}))
	require.Empty(t, th.TagWaitStats())
	deny(t, th.ForTag("a"), 10)
	th.ForTag("b")
	require.Equal(t, []TagWaitStats{{Tag: "a", Stats: []WaitStats{{Reason: ReasonLimit, Refusals: 1}}}}, th.TagWaitStats())
}
