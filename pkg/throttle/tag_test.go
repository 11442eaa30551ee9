package throttle

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// quotaed returns a Throttle with quotas.
func quotaed(t testing.TB, limit Limit, q Quotas, opts ...Option) *Throttle {
	t.Helper()
	th, err := New(limit, append(opts, WithQuotas(q))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, th.Close()) })
	return th
}

// viewOf is what ForTag returns where there are quotas.
func viewOf(l Limiter) *tagView {
	v, ok := l.(*tagView)
	if !ok {
		panic("no quotas")
	}
	return v
}

func tagsOf(quotas map[string]Quota) Quotas { return Quotas{Tags: quotas} }

// inHand is how many tokens of a tag's quota are at hand.
func inHand(th *Throttle, tag string) int64 {
	return viewOf(th.ForTag(tag)).first().status().InHand
}

func statusOf(th *Throttle, tag string) TagStatus {
	for _, s := range th.Status().Tags {
		if s.Tag == tag {
			return s
		}
	}
	return TagStatus{}
}

func TestForTagWithoutQuotasIsTheThrottle(t *testing.T) {
	th := whole(t, Limit{Max: 10})
	require.Same(t, th, th.ForTag("a"))
	require.Same(t, th, th.ForTags("a", "b"))
	require.Nil(t, th.Status().Tags)
	_, ok := All(th, th.ForTag("a")).(Tagger)
	require.False(t, ok, "it does not tell tags apart")
}

func TestQuotasAreChecked(t *testing.T) {
	_, err := New(Limit{}, WithQuotas(Quotas{Other: Quota{Total: 1}}))
	require.ErrorContains(t, err, "max 0")
	_, err = New(Limit{Max: 10}, WithQuotas(tagsOf(map[string]Quota{"a": {Reserved: 11}})))
	require.ErrorContains(t, err, "reserve 11")
	th := quotaed(t, Limit{Max: 10}, tagsOf(map[string]Quota{"a": {Total: 5}}))
	require.Equal(t, th.Limit().Per, rateHolder{th}.Terms().Quotas.Tags["a"].Per, "a sharer gets the defaults filled in")
}

// What a hard limit grants is less than its max, and depends on its burst: that is what can be reserved.
func TestQuotasFitWhatAHardLimitGrants(t *testing.T) {
	limit := Limit{Max: 1000, Burst: 100, Hard: true} // (1000 + 1 - 100) / 1.0833
	reserved := func(n int) Quotas { return tagsOf(map[string]Quota{"a": {Reserved: n - 1}, "b": {Reserved: 1}}) }
	require.NoError(t, limit.CheckQuotas(reserved(831)))
	_, err := New(limit, WithQuotas(reserved(832)))
	require.EqualError(t, err, "quotas reserve 832 tokens per second together, allowed: at most what the hard limit grants in the long run, which is 831.692")
	limit.Burst = 10
	require.NoError(t, limit.CheckQuotas(reserved(832)))
	limit.Hard = false
	require.NoError(t, limit.CheckQuotas(reserved(1000)))
}

func reasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// However many names come, what is remembered of them is bounded.
func TestHostileNamesAreBounded(t *testing.T) { synctest.Test(t, hostileNames) }

// hostileNames runs while time stands still: no tag becomes idle.
func hostileNames(t *testing.T) {
	th := quotaed(t, Limit{Max: 1_000_000}, Quotas{
		Tags: map[string]Quota{"known": {Total: 5}}, Match: []QuotaPattern{{Tag: "free/*", Quota: Quota{Total: 10}}},
	})
	require.Equal(t, 12_288, th.tags.most, "as docs/quotas.md says")
	th.tags.most = fewTags
	for i := range 10_000 {
		th.ForTag(fmt.Sprint("n", i)).TryAcquire(1)
		if i%4 == 0 {
			th.ForTag(fmt.Sprint("free/", i)).TryAcquire(1)
			th.ForTags(fmt.Sprint("n", i), fmt.Sprint("free/", i)).TryAcquire(1)
		}
	}
	s := th.tags
	require.LessOrEqual(t, len(s.tags), fewTags)
	require.LessOrEqual(t, len(s.limiters), fewTags+sharedTags+maxNames+1)
	require.LessOrEqual(t, len(s.joint), maxNames)
	require.LessOrEqual(t, len(th.Status().Tags), fewTags+sharedTags)
	require.Equal(t, "known", viewOf(th.ForTag("known")).name)
	require.Contains(t, s.shared[:], viewOf(th.ForTag("free/999999999")).first(), "who comes late shares a quota")
}

func TestKnownTagTakesNoAllocation(t *testing.T) {
	th := quotaed(t, Limit{Max: 1_000_000_000, Burst: 1_000_000}, tagsOf(map[string]Quota{"a": {Total: 500_000_000}, "b": {}}))
	th.ForTags("a", "b")
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		th.ForTag("a").TryAcquire(1)
		th.ForTag("nobody").TryAcquire(1)
		th.ForTags("a", "b").TryAcquire(1)
	}))
}
