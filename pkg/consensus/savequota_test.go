package consensus_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A tagHolder is a limiter with quotas that only notes what its pool says, and reports what it is told to.
type tagHolder struct {
	mu      sync.Mutex
	limit   throttle.Limit
	quotas  throttle.Quotas
	reports []sharing.TagReport
	keep    time.Duration
	inForce throttle.Quotas
	grants  map[string]sharing.TagGrant
	tokens  map[string]int64
}

func (h *tagHolder) Terms() sharing.Terms {
	return sharing.Terms{Ceiling: hook.Ceiling(h.limit), Quotas: &h.quotas}
}
func (*tagHolder) Lease(limit.Lease) {}
func (*tagHolder) Report(time.Duration) sharing.Report {
	return sharing.Report{Demand: limit.WholeShare / 2}
}
func (*tagHolder) SetPauses([]throttle.Paused) {}

func (h *tagHolder) ReportTags(keep time.Duration) []sharing.TagReport {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keep = keep
	return h.reports
}

func (h *tagHolder) GrantTags(grants []sharing.TagGrant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range grants {
		h.grants[g.Tag] = g
		h.tokens[g.Tag] += g.Batch.Tokens
	}
}

func (h *tagHolder) SetQuotas(q throttle.Quotas) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inForce = q
}

func (h *tagHolder) granted(tag string) (sharing.TagGrant, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.grants[tag], h.tokens[tag]
}

func (h *tagHolder) quota(tag string) throttle.Quota {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, q := h.inForce.Find(tag)
	return q
}

// tagged joins a processor with quotas to a pool of 1000 tokens per second.
func tagged(t *testing.T, store driver.Store, id string, q throttle.Quotas) (*consensus.Member, *tagHolder) {
	t.Helper()
	m, err := consensus.Join(t.Context(), store, "pool", consensus.WithID(id), consensus.WithLogger(quiet), consensus.WithOnStoreLoss(consensus.Stop))
	require.NoError(t, err)
	h := &tagHolder{
		limit: throttle.Limit{Max: 1000, Per: time.Second}, quotas: q.WithDefaults(time.Second),
		reports: []sharing.TagReport{{Tag: "acme", Waiting: 5}, {Tag: "", Waiting: 1}},
		grants:  map[string]sharing.TagGrant{}, tokens: map[string]int64{},
	}
	m.Attach(h)
	t.Cleanup(func() { _ = m.Leave(context.Background()) })
	return m, h
}

var acmeQuotas = throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 300, Total: 400}, "zeta": {Reserved: 500}}}

// A member asks its limiter for its tags at each request, and gives it what the store's tag buckets give.
func TestMemberCarriesTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		m, h := tagged(t, store, "a", acmeQuotas)
		_, _ = tagged(t, store, "b", acmeQuotas)
		time.Sleep(10 * time.Second)
		g, tokens := h.granted("acme")
		require.True(t, g.Needed)
		require.Positive(t, tokens)
		require.Equal(t, "total", g.By)
		require.InDelta(t, 400, g.Target, 1)
		require.Positive(t, g.Rate)
		require.Equal(t, 2*interval, g.Batch.Until.Sub(g.Batch.From))
		require.Less(t, time.Since(g.Batch.From), 2*interval)
		require.Equal(t, 19*interval/20, h.keep)
		other, _ := h.granted("")
		require.False(t, other.Needed)
		v := m.View()
		require.Len(t, v.Tags, 2)
		require.Equal(t, "acme", v.Tags[1].Tag)
		require.Zero(t, v.QuotaVersion)
		require.Len(t, protocol.PlanTags(v.Roster, throttle.Quotas{}, 1000), 2)
		require.Equal(t, protocol.QuotaHash(v.Roster[0]), protocol.QuotaHash(v.Roster[1]))
		require.NotEmpty(t, protocol.QuotaHash(v.Roster[0]))
	})
}

// Processors of different quotas are named, in the log and to operators; a change of the pool is no difference.
func TestQuotasThatDisagreeAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var log strings.Builder
		logged := func() string { synctest.Wait(); return log.String() }
		join := func(id string, to io.Writer, reserved int) *consensus.Member {
			drop := slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}
			m, err := consensus.Join(t.Context(), store, "pool", consensus.WithID(id), consensus.WithLogger(slog.New(slog.NewTextHandler(to, &drop))))
			require.NoError(t, err)
			th, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(m), throttle.WithQuotas(throttle.Quotas{
				Tags: map[string]throttle.Quota{"acme": {Reserved: reserved}},
			}), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, th.Close()) })
			return m
		}
		a := join("a", &log, 30)
		join("b", io.Discard, 30)
		time.Sleep(30 * time.Second)
		require.NoError(t, protocol.SaveQuota(t.Context(), store, "pool", "acme", &throttle.Quota{Reserved: 5}, false))
		time.Sleep(5 * time.Second)
		require.NotContains(t, logged(), "disagree")
		require.Empty(t, protocol.Disagreement(overview(t, store).Settings, false))

		join("c", io.Discard, 40)
		time.Sleep(5 * time.Second)
		settings := overview(t, store).Settings
		require.Len(t, settings, 2)
		require.NotEmpty(t, settings[0].Quotas)
		require.NotEqual(t, settings[0].Quotas, settings[1].Quotas)
		text := protocol.Disagreement(settings, false)
		require.Contains(t, text, "100 per 1s, quotas "+protocol.QuotaHash(a.View().Roster[0])+" (a, b)")
		require.Contains(t, text, "100 per 1s, quotas "+protocol.QuotaHash(a.View().Roster[2])+" (c)")
		require.Contains(t, logged(), "level=WARN msg=\"pods of the pool have settings that disagree\"")
		require.Contains(t, logged(), text)
	})
}

// A member logs what the targets of its tags are worked out from, if its logger wants to know, and shows it.
func TestMemberLogsTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		m, err := consensus.Join(t.Context(), store, "pool", consensus.WithID("a"), consensus.WithLogger(logger))
		require.NoError(t, err)
		th, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(m), throttle.OnClose(m.Leave), throttle.WithQuotas(throttle.Quotas{
			Tags:  map[string]throttle.Quota{"acme": {Reserved: 30, Total: 50, Weight: 3, Class: throttle.ClassBatch}, "idle": {Reserved: 9}},
			Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 70, Weight: 2}}},
		}))
		require.NoError(t, err)
		defer func() { require.NoError(t, th.Close()) }()
		time.Sleep(20 * time.Second)
		log.Reset()
		for range 200 {
			th.ForTag("acme").TryAcquire(10)
			th.ForTag("free/a").TryAcquire(1)
			time.Sleep(100 * time.Millisecond)
		}
		views := map[string]consensus.TagView{}
		for _, v := range m.View().Tags {
			views[v.Tag] = v
		}
		acme := views["acme"]
		require.InDelta(t, 50, acme.Asked, 1, "no more than the total")
		acme.Asked, acme.Demand, acme.Used, acme.Target, acme.Rate, acme.InHand = 0, 0, 0, 0, 0, 0
		require.Equal(t, consensus.TagView{
			Tag: "acme", Named: true, Reserved: 30, Total: 50, Weight: 3, Class: throttle.ClassBatch, By: acme.By, Lacks: acme.Lacks,
		}, acme)
		require.False(t, views["free/a"].Named)
		require.Zero(t, views["free/a"].Total, "each tag of a pattern has its own")
		require.Equal(t, 2, views["free/a"].Weight)
		require.InDelta(t, 10, views["free/a"].Asked, 2)

		lines := strings.Split(log.String(), "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, `msg="the target of a tag"`) })
		require.Len(t, lines, 4, "every five seconds, of one tag")
		require.Regexp(t, `level=DEBUG .* tag=acme demand=\S+ demandHere=\S+ usedHere=\S+ reserved=30 total=50 limiting=0 limitingHere=0 `+
			`weight=3 class=batch target=\S+ by=\S+ rateHere=\S+ inHand=\d+ spent=0 budget=0 lacks=`, lines[3])
	})
}

// An operator's change is in force at all processors after a sync, and over when it is cleared.
func TestQuotasChangeWhileTheyAreInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memstore.New(), t.Context()
		m, h := tagged(t, store, "a", acmeQuotas)
		_, far := tagged(t, store, "b", acmeQuotas)
		time.Sleep(5 * time.Second)
		require.Equal(t, 400, h.quota("acme").Total)
		changes, err := protocol.LoadQuotas(ctx, store, "pool")
		require.NoError(t, err)
		require.Zero(t, changes)

		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "acme", nil, false), "nothing to clear")
		half := throttle.Quota{Total: 200, Budgets: []throttle.Budget{{Amount: 5e6, Per: "day"}}}
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "acme", &half, false))
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "newcomer", &throttle.Quota{Total: 10, Per: time.Minute}, false))
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "", &throttle.Quota{Total: 50}, false))
		changes, err = protocol.LoadQuotas(ctx, store, "pool")
		require.NoError(t, err)
		require.Equal(t, map[string]throttle.Quota{"acme": half, "newcomer": {Total: 10, Per: time.Minute}}, changes.Tags)
		require.Equal(t, &throttle.Quota{Total: 50}, changes.Other)
		time.Sleep(2 * interval)
		require.Equal(t, changes.Version, m.View().QuotaVersion)
		for _, h := range []*tagHolder{h, far} {
			require.Equal(t, 200, h.quota("acme").Total)
			require.Equal(t, time.Second, h.quota("acme").Per, "the defaults are filled in")
			require.Equal(t, 10, h.quota("newcomer").Total)
			require.Equal(t, 500, h.quota("zeta").Reserved, "another tag is as it was")
			require.Equal(t, 50, h.quota("unknown").Total)
			g, _ := h.granted("acme")
			require.EqualValues(t, 5_000_000, g.Budget)
			other, _ := h.granted("")
			require.True(t, other.Needed)
		}

		for _, tag := range []string{"acme", "newcomer", ""} {
			require.NoError(t, protocol.SaveQuota(ctx, store, "pool", tag, nil, false))
		}
		time.Sleep(2 * interval)
		require.Equal(t, 400, h.quota("acme").Total)
		require.Zero(t, h.quota("newcomer").Total)
		changes, err = protocol.LoadQuotas(ctx, store, "pool")
		require.NoError(t, err)
		require.Empty(t, changes.Tags)
		require.Nil(t, changes.Other)
	})
}

func TestSaveQuotaRefusesWhatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memstore.New(), t.Context()
		require.ErrorIs(t, protocol.SaveQuota(ctx, store, "pool", "x", &throttle.Quota{Total: 1}, false), driver.ErrNoPool)
		_, err := protocol.LoadQuotas(ctx, store, "pool")
		require.ErrorIs(t, err, driver.ErrNoPool)
		_, _ = tagged(t, store, "a", acmeQuotas)
		time.Sleep(5 * time.Second)
		refused := func(tag string, q throttle.Quota, field string) {
			t.Helper()
			err := protocol.SaveQuota(ctx, store, "pool", tag, &q, false)
			bad := (*driver.RequestError)(nil)
			require.ErrorAs(t, err, &bad)
			require.Equal(t, field, bad.Field, err)
		}
		refused("x", throttle.Quota{Reserved: -1}, "quotas.tags.x.reserved")
		refused("x", throttle.Quota{Total: 5, Reserved: 6}, "quotas.tags.x.reserved")
		refused("x\x00", throttle.Quota{Total: 5}, "Tag")
		refused("x", throttle.Quota{Reserved: 201}, "Reserved")
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "x", &throttle.Quota{Reserved: 200}, false))
		time.Sleep(2 * interval)
		refused("y", throttle.Quota{Reserved: 1, Per: 100 * time.Millisecond}, "Reserved")
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "x", &throttle.Quota{Reserved: 150}, false), "less than before")
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "y", &throttle.Quota{Reserved: 900}, true), "forced")

		big := throttle.Quota{Reserved: 1, Total: 100_000_000, Burst: 1_000_000, Per: time.Hour, Weight: 7, Class: throttle.ClassBatch, Hard: true}
		for i := range 101 {
			if err = protocol.SaveQuota(ctx, store, "pool", fmt.Sprint("tag", i), &big, true); err != nil {
				break
			}
		}
		bad := (*driver.RequestError)(nil)
		require.ErrorAs(t, err, &bad, "a document has room for some only")
		require.Equal(t, "Tag", bad.Field)
	})
}

// Two changes that do not fit together are refused also while no processor knows of the first one.
func TestSaveQuotaKnowsWhatWasSavedJustBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memstore.New(), t.Context()
		_, _ = tagged(t, store, "a", throttle.Quotas{})
		time.Sleep(5 * time.Second)
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "x", &throttle.Quota{Reserved: 600}, false))
		bad := (*driver.RequestError)(nil)
		require.ErrorAs(t, protocol.SaveQuota(ctx, store, "pool", "y", &throttle.Quota{Reserved: 500}, false), &bad)
		require.Equal(t, "Reserved", bad.Field)
		require.ErrorAs(t, protocol.SaveQuota(ctx, store, "pool", "", &throttle.Quota{Reserved: 500}, false), &bad)
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "x", &throttle.Quota{Reserved: 500}, false), "in its own place")
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "y", &throttle.Quota{Reserved: 500}, false))
	})
}

// Processors of a hard limit tell what it grants in the long run: no more can be reserved, however the limit was set.
func TestSaveQuotaKnowsWhatAHardLimitGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memstore.New(), t.Context()
		m, err := consensus.Join(ctx, store, "pool", consensus.WithID("a"), consensus.WithLogger(quiet), consensus.WithOnStoreLoss(consensus.Stop))
		require.NoError(t, err)
		th, err := throttle.New(throttle.Limit{Max: 1000, Burst: 100, Hard: true}, throttle.WithSharer(m), throttle.OnClose(m.Leave),
			throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 300}}}))
		require.NoError(t, err)
		defer func() { require.NoError(t, th.Close()) }()
		time.Sleep(5 * time.Second)
		require.InDelta(t, 0.831693, overview(t, store).Processors[0].Granted, 1e-9, "rounded up")
		err = protocol.SaveQuota(ctx, store, "pool", "x", &throttle.Quota{Reserved: 534}, false)
		require.ErrorContains(t, err, `allowed: at most 831.693, what the hard limit grants in the long run, of pod "a", unless it is forced`)
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "x", &throttle.Quota{Reserved: 531}, false))
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "x", &throttle.Quota{Reserved: 700}, true), "forced")
	})
}

// Nor do two changes pass that fit each by itself what is configured, whatever processors have told since.
func TestSaveQuotaAddsWhatIsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memstore.New(), t.Context()
		configured := throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Reserved: 500}, "zeta": {Reserved: 100}}, Other: throttle.Quota{Reserved: 50}}
		_, _ = tagged(t, store, "a", configured)
		time.Sleep(5 * time.Second)
		save := func(tag string, reserved int) error {
			return protocol.SaveQuota(ctx, store, "pool", tag, &throttle.Quota{Reserved: reserved}, false)
		}
		reserved := func(known throttle.Quotas) float64 {
			o := overview(t, store)
			rate, ok := o.Reserved(known)
			require.True(t, ok)
			return rate
		}
		require.NoError(t, save("x", 300))
		bad := (*driver.RequestError)(nil)
		require.ErrorAs(t, save("y", 300), &bad, "no processor knows of x")
		require.Equal(t, "Reserved", bad.Field)
		require.NoError(t, save("y", 50))
		require.InEpsilon(t, 1000, reserved(throttle.Quotas{}), 1e-3, "at once")
		require.NoError(t, save("y", 0))
		time.Sleep(2 * interval)
		require.InEpsilon(t, 950, reserved(throttle.Quotas{}), 1e-3, "nothing counts twice after a sync")

		require.NoError(t, save("zeta", 50))
		require.InEpsilon(t, 1000, reserved(throttle.Quotas{}), 1e-3, "until processors have synced")
		require.InEpsilon(t, 900, reserved(configured), 1e-9, "who knows what is configured knows what is in force")
		time.Sleep(2 * interval)
		require.InEpsilon(t, 900, reserved(throttle.Quotas{}), 1e-3)
		require.NoError(t, save("", 20))
		time.Sleep(2 * interval)
		require.InEpsilon(t, 870, reserved(throttle.Quotas{}), 1e-3)
		require.NoError(t, save("y", 130))
	})
}

func TestAQuotaThatNobodyWouldUseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		start(t, store, "a", 1)
		time.Sleep(5 * time.Second)
		bad := (*driver.RequestError)(nil)
		require.ErrorAs(t, protocol.SaveQuota(t.Context(), store, "pool", "x", &throttle.Quota{Total: 1}, false), &bad)
	})
}

// What a later release wrote changes nothing, and is not taken for nothing.
func TestAnUnreadableDocumentOfQuotasChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memstore.New(), t.Context()
		m, h := tagged(t, store, "a", acmeQuotas)
		time.Sleep(5 * time.Second)
		require.NoError(t, protocol.SaveQuota(ctx, store, "pool", "acme", &throttle.Quota{Total: 150}, false))
		time.Sleep(2 * interval)
		known := m.View().QuotaVersion
		for _, body := range []string{
			`{"tags":{"acme":{"total":5,"colour":"red"}}}`, `{"tags":{"acme":{"total":-5}}}`, `{"x":1}`, `{}{}`, `[]`, `{"tags":{"":{"total":5}}}`,
		} {
			changes, err := protocol.LoadQuotas(ctx, store, "pool")
			version := changes.Version
			if err != nil {
				docs, _, err := store.Load(ctx, "pool")
				require.NoError(t, err)
				version = docs[0].Version
			}
			_, err = store.Save(ctx, "pool", driver.DocumentReport{Name: "quota", Version: driver.NextVersion(version, 1), Base: version, Body: []byte(body)})
			require.NoError(t, err)
			time.Sleep(2 * interval)
			require.Error(t, m.View().QuotaError, body)
			require.Equal(t, known, m.View().QuotaVersion)
			require.Equal(t, 150, h.quota("acme").Total)
			_, err = protocol.LoadQuotas(ctx, store, "pool")
			require.Error(t, err)
			require.Error(t, protocol.SaveQuota(ctx, store, "pool", "acme", &throttle.Quota{Total: 1}, false))
		}
	})
}
