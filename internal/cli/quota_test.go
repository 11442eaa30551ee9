package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// withQuotas runs f on the store of a pool "p" of one processor, in virtual time: 100 tokens per second, of which acme has 30 reserved.
func withQuotas(t *testing.T, f func(t *testing.T, store driver.Store, th *throttle.Throttle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		member, err := consensus.Join(t.Context(), store, "p", consensus.WithID("a"), consensus.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		th, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(member), throttle.WithQuotas(throttle.Quotas{
			Tags:  map[string]throttle.Quota{"acme": {Reserved: 30}, "beta": {Total: 40}},
			Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 20}}},
		}))
		require.NoError(t, err)
		defer func() {
			require.NoError(t, th.Close())
			require.NoError(t, member.Leave(t.Context()))
		}()
		time.Sleep(30 * time.Second)
		f(t, store, th)
	})
}

// What is set is what is got, of that tag alone; to clear what is not there is no fault.
func TestQuota(t *testing.T) {
	withQuotas(t, func(t *testing.T, store driver.Store, _ *throttle.Throttle) {
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=100",
			"NUMATHROTTLE_QUOTAS={tags: {acme: {reserved: 30}, beta: {total: 40}}, match: [{tag: free/*, total: 20}]}")
		const then = ", from the next sync of each pod on; "
		for _, c := range []struct{ args, want string }{
			{"clear acme", "p: tag acme <empty>"},
			{"get acme", "p: tag acme <empty>"},
			{"list", "p: <empty>: no quota is changed\np: 30 of 100 tokens per second are reserved"},
			{"get acme --json", `{"pool":"p","tag":"acme","quota":null}`},
			{"get acme -o json", `{"pool":"p","tag":"acme","quota":null}`},
			{"set acme --total 50", "p: tag acme {reserved: 30, total: 50}" + then + "30 of 100 tokens per second are reserved"},
			{"get acme", "p: tag acme {reserved: 30, total: 50}"},
			{"set acme --reserved 40 --weight 3", "p: tag acme {reserved: 40, total: 50, weight: 3}" + then + "40 of 100 tokens per second are reserved"},
			{"get gamma", "p: tag gamma <empty>"},
			{
				"set --other --total=600 --per=1m --class=batch --hard=true --shadow=true --json",
				`{"pool":"p","tag":"","quota":{"total":600,"per":"1m0s","class":"batch","hard":true,"shadow":true},"reserved":{"rate":40,"limit":100}}`,
			},
			{"get --other", "p: all other tags {total: 600, per: 1m, class: batch, hard: true, shadow: true}"},
			{"get acme --json", `{"pool":"p","tag":"acme","quota":{"reserved":40,"total":50,"weight":3}}`},
			{
				"set beta --budgets=[{amount:_5e6,_per:_day,_zone:_Europe/Berlin,_then:_batch}]",
				"p: tag beta {total: 40, budgets: [{amount: 5000000, per: day, zone: Europe/Berlin, then: batch}]}" + then +
					"40 of 100 tokens per second are reserved",
			},
			{"set beta --budgets=[] --total none", "p: tag beta {}" + then + "40 of 100 tokens per second are reserved"},
			{"set beta --total 0", "p: tag beta {total: 0}" + then + "40 of 100 tokens per second are reserved"},
			{"get beta", "p: tag beta {total: 0}"},
			{"set beta --weight 2", "p: tag beta {total: 0, weight: 2}" + then + "40 of 100 tokens per second are reserved"},
			{
				"set beta --total 600 --per 1m --hard=true", "p: tag beta {total: 600, per: 1m, weight: 2, hard: true}" + then +
					"40 of 100 tokens per second are reserved; hard leaves it 87.9 % of its total in the long run",
			},
			{"clear beta", "p: tag beta <empty>"},
			{"set free/x --weight 2", "p: tag free/x {total: 20, weight: 2}" + then + "40 of 100 tokens per second are reserved"}, // its pattern's
			{"clear free/x", "p: tag free/x <empty>"},
			{
				"list --json", `{"pool":"p","tags":{"acme":{"reserved":40,"total":50,"weight":3}},` +
					`"other":{"total":600,"per":"1m0s","class":"batch","hard":true,"shadow":true},"reserved":{"rate":40,"limit":100}}`,
			},
			{"clear --other", "p: all other tags <empty>"},
			{"clear acme --json", `{"pool":"p","tag":"acme","quota":null}`},
		} {
			args := strings.Fields(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "_", " ")
			}
			out, err := tm.run(t, append([]string{"quota"}, args...)...)
			require.NoError(t, err, c.args)
			require.Equal(t, c.want+"\n", out, c.args)
		}
		tm = newTerminal(store, "NUMATHROTTLE_POOL=p") // knows nothing of what is configured
		out, err := tm.run(t, "quota", "set", "new", "--reserved=20")
		require.NoError(t, err)
		require.Equal(t, "p: tag new {reserved: 20}"+then+"at most 50 of 100 tokens per second are reserved, what was configured for this one included\n", out)
		out, err = tm.run(t, "quota", "set", "newer", "--reserved=10")
		require.NoError(t, err)
		require.Equal(t, "p: tag newer {reserved: 10}"+then+"at most 60 of 100 tokens per second are reserved, what was configured for this one included\n",
			out, "the change before counts")
		out, err = tm.run(t, "quota", "set", "newer", "--reserved=5")
		require.NoError(t, err)
		require.Equal(t, "p: tag newer {reserved: 5}"+then+"55 of 100 tokens per second are reserved\n", out, "it is known")
	})
}

// A change that ends by itself says when, who made it and why; a limit below what is reserved is set, with a warning.
func TestQuotaForAWhile(t *testing.T) {
	withQuotas(t, func(t *testing.T, store driver.Store, th *throttle.Throttle) {
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=100",
			"NUMATHROTTLE_QUOTAS={tags: {acme: {reserved: 30}, beta: {total: 40}}, match: [{tag: free/*, total: 20}]}")
		_, err := tm.run(t, "quota", "set", "acme", "--reserved=60", "--for=1h", "--by=ann", "--reason=a sale")
		require.NoError(t, err)
		for _, args := range [][]string{{"quota", "get", "acme"}, {"quota", "list"}} {
			out, err := tm.run(t, args...)
			require.NoError(t, err)
			require.Contains(t, out, "2000-01-01T01:00:30Z by ann: a sale", args)
		}
		out, err := tm.run(t, "quota", "get", "acme", "--json")
		require.NoError(t, err)
		require.Contains(t, out, `"until":"2000-01-01T01:00:30Z"`)
		require.Contains(t, out, `"by":"ann"`)
		require.Contains(t, out, `"reason":"a sale"`)

		_, err = tm.run(t, "quota", "set", "acme", "--weight=3")
		require.NoError(t, err)
		out, err = tm.run(t, "quota", "get", "acme")
		require.NoError(t, err)
		require.Equal(t, "p: tag acme {reserved: 60, weight: 3} until 2000-01-01T01:00:30Z: a sale\n", out)
		for _, args := range [][]string{
			{"pause", "set", "--tag", ""},
			{"resume", "--tag="},
			{"pause", "clear", "--tag="},
			{"pause", "set", "--tag=free/*"},
			{"quota", "set", "free/*", "--weight=2"},
			{"quota", "spent", "set", "free/*", "--per=day", "--amount=0"},
		} {
			_, err := tm.run(t, args...)
			require.ErrorContains(t, err, "allowed: the name of a tag", args)
			require.Equal(t, ExitUsage, ExitCode(err), args)
		}

		_, err = tm.run(t, "limit", "set", "--max=61")
		require.NoError(t, err)
		require.Empty(t, tm.errOut.String())
		out, err = tm.run(t, "limit", "set", "--max=59")
		require.NoError(t, err)
		require.Contains(t, tm.errOut.String(), "warning: 60 of 59 tokens per second are reserved: all that is reserved is scaled down\n")
		require.Contains(t, out, "p: 59 per 1s")
		time.Sleep(time.Hour + 5*time.Second)
		out, err = tm.run(t, "quota", "get", "acme")
		require.NoError(t, err)
		require.Equal(t, "p: tag acme <empty>\n", out, "it has ended")
		for _, args := range [][]string{{"--for=1h"}, {"--for=none", "--by=ann"}} {
			_, err = tm.run(t, append([]string{"quota", "set", "acme", "--weight=2"}, args...)...)
			require.NoError(t, err)
		}
		out, err = tm.run(t, "quota", "get", "acme")
		require.NoError(t, err)
		require.NotContains(t, out, "until")
	})
}

// Who changes a quota without the processors' settings is told what is lost.
func TestQuotaSetWarns(t *testing.T) {
	withQuotas(t, func(t *testing.T, store driver.Store, _ *throttle.Throttle) {
		const other = "warning: pod a has other quotas than this command knows: what is configured there for tag acme is replaced"
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
		_, err := tm.run(t, "quota", "set", "acme", "--total=50")
		require.NoError(t, err)
		require.Contains(t, tm.errOut.String(), other)
		_, err = tm.run(t, "quota", "set", "acme", "--weight=2")
		require.NoError(t, err)
		require.Empty(t, tm.errOut.String(), "it goes on from the change before")
		_, err = tm.run(t, "quota", "clear", "acme")
		require.NoError(t, err)

		tm = newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=100",
			"NUMATHROTTLE_QUOTAS={tags: {acme: {reserved: 30}, beta: {total: 40}}, match: [{tag: free/*, total: 20}]}")
		_, err = tm.run(t, "quota", "set", "acme", "--total=50")
		require.NoError(t, err)
		require.Empty(t, tm.errOut.String(), "it has the same quotas")
	})
}

func TestQuotaFaults(t *testing.T) {
	withQuotas(t, func(t *testing.T, store driver.Store, _ *throttle.Throttle) {
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
		for args, want := range map[string]string{
			"set --total 5":        "TAG is missing",
			"clear a b":            "one argument too many",
			"set acme --total=":    "--total is empty",
			"set acme --budgets {": "--budgets",
			"set acme":             "numathrottle quota set: nothing is to be set, allowed: flags such as --total; numathrottle quota clear ends a change",
			"set acme --total=x":   `numathrottle quota set: --total is "x", allowed: a whole number`,
			"set acme --total=-1":  `numathrottle quota set: --total is -1, allowed: 0 (blocked) to 1000000000, or none`,
			"set acme --hard=yes":  `numathrottle quota set: --hard is "yes", allowed: true or false`,
			"set acme --per=1":     `numathrottle quota set: --per is "1"; did you mean 1s?, allowed: a duration such as 1m`,
			"set acme --class=":    "numathrottle quota set: --class is empty, allowed: interactive or batch",
			"set acme --class=low": `numathrottle quota set: --class is "low", allowed: interactive or batch`,
			"set acme --budgets=x": "numathrottle quota set: --budgets is a single value, allowed: a list",
			"set acme --reserved=99": "tokens per second by all tags together, what is configured for this one included, " +
				"allowed: at most 100, the limit of pod \"a\", unless it is forced",
			"set free/* --total=1": `numathrottle quota set: TAG is "free/*", a pattern, allowed: the name of a tag; ` +
				"patterns are changed where the pods are configured",
			"set a b --total=1":     `numathrottle quota set: "b" is one argument too many, allowed: one TAG`,
			"get a --other":         `numathrottle quota get: --other is set, and so is the tag "a", allowed: one of them`,
			"set acme --nonsense=1": "numathrottle quota set: --nonsense is no flag",
			"list a":                `numathrottle quota list: "a" is no command or argument, allowed: none`,
			"list -o yaml":          `numathrottle quota list: --output is "yaml", allowed: text, json`,
		} {
			_, err := tm.run(t, append([]string{"quota"}, strings.Fields(args)...)...)
			require.ErrorContains(t, err, want, args)
			if !strings.Contains(args, "--reserved") {
				require.Equal(t, ExitUsage, ExitCode(err), args)
			}
		}
		for _, command := range []string{"get", "set", "clear"} {
			_, err := tm.run(t, "quota", command)
			require.Equal(t, ExitUsage, ExitCode(err), "no second try mends it")
			require.EqualError(t, err, "numathrottle quota "+command+": TAG is missing, allowed: the name of a tag, or --other")
			require.Contains(t, tm.errOut.String(), "numathrottle quota "+command+" [options] TAG", "help is printed")
		}
		out, err := tm.run(t, "quota", "list")
		require.NoError(t, err)
		require.Equal(t, "p: <empty>: no quota is changed\np: 30 of 100 tokens per second are reserved\n", out, "nothing was changed")

		out, err = tm.run(t, "quota", "set", "more", "--reserved=90", "--force")
		require.NoError(t, err)
		require.Contains(t, out, "120 of 100 tokens per second are reserved")
	})
	store := memstore.New()
	join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
	_, err := tm.run(t, "quota", "set", "acme", "--total=5")
	require.ErrorContains(t, err, "no live pod has quotas")
	out, err := tm.run(t, "quota", "list", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"pool":"p","tags":{},"other":null,"reserved":null}`, out)
}

// The busiest tags come first, with what they ask for, what they use of it, what they should get, and why. Those of a pattern are one.
func TestTop(t *testing.T) {
	withQuotas(t, func(t *testing.T, store driver.Store, th *throttle.Throttle) {
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=100",
			"NUMATHROTTLE_QUOTAS={tags: {acme: {reserved: 30}, beta: {total: 40}}, match: [{tag: free/*, total: 20}]}")
		out, err := tm.run(t, "top")
		require.NoError(t, err)
		require.Equal(t, "p: 30 of 100 tokens per second are reserved\nno tag asks for anything\n", out)

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{}, 5)
		for tag, each := range map[string]time.Duration{
			"acme": 100 * time.Millisecond, "beta": 5 * time.Millisecond, "": 5 * time.Millisecond,
			"free/a": 400 * time.Millisecond, "free/b": 400 * time.Millisecond,
		} {
			go func() {
				defer func() { ended <- struct{}{} }()
				l := th.ForTag(tag)
				for ctx.Err() == nil {
					l.TryAcquire(1)
					time.Sleep(each)
				}
			}()
		}
		defer func() {
			stop()
			for range 5 {
				<-ended
			}
		}()
		time.Sleep(20 * time.Second)
		out, err = tm.run(t, "top")
		require.NoError(t, err)
		lines := strings.Split(out, "\n")
		require.Equal(t, []string{"TAG", "DEMAND", "USED", "TARGET", "LIMITED", "BY", "PODS"}, strings.Fields(lines[2]))
		var tags, by []string
		for _, line := range lines[3:7] {
			fields := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "(all others)", "other"), " (pattern)", ""))
			tags, by = append(tags, fields[0]), append(by, fields[4])
		}
		require.Equal(t, []string{"other", "beta", "acme", "free/*"}, tags, out)
		require.Equal(t, []string{"limit", "rate_cap", "demand", "demand"}, by, out)

		out, err = tm.run(t, "top", "--json")
		require.NoError(t, err)
		var is struct {
			Tags []operate.Tag `json:"tags"`
		}
		require.NoError(t, json.Unmarshal([]byte(out), &is))
		for i, want := range []struct {
			name         string
			demand, used float64
		}{{"", 200, 42}, {"beta", 40, 40}, {"acme", 10, 10}, {"free/*", 5, 5}} {
			tag := is.Tags[i]
			require.Equal(t, want.name, tag.Tag)
			require.Equal(t, want.name == "free/*", tag.Pattern)
			require.InDelta(t, want.demand, tag.Demand, 0.6*want.demand, want.name)
			require.InDelta(t, want.used, tag.Used, 0.6*want.used, want.name)
		}
		out, err = newTerminal(store, "NUMATHROTTLE_POOL=p").run(t, "top")
		require.NoError(t, err)
		require.Contains(t, out, "#", "names that are not known are hashes")
		out, err = newTerminal(store, "NUMATHROTTLE_POOL=p").run(t, "top", "beta")
		require.NoError(t, err)
		require.Contains(t, out, "beta")
	})
}

// What stops a tag is said whatever the plan gives it, and a tag whose budget is spent stands in the list though it reports no demand.
func TestTopSaysWhatStopsTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		quotas := throttle.Quotas{Tags: map[string]throttle.Quota{
			"acme": {Total: 40}, "beta": {Budgets: []throttle.Budget{{Amount: 30, Per: limit.PeriodDay}}},
			"gamma": {Budgets: []throttle.Budget{{Amount: 30, Per: limit.PeriodDay, Then: limit.ThenLower}}},
		}}
		ctx, cancel := context.WithCancel(t.Context())
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=100", "NUMATHROTTLE_QUOTAS={tags: {acme: {total: 40}, "+
			"beta: {budgets: [{amount: 30, per: day}]}, gamma: {budgets: [{amount: 30, per: day, then: batch}]}}}")
		var ended sync.WaitGroup
		var links []*world.Link
		for _, id := range []string{"a", "b"} {
			link := world.NewLink(store)
			links = append(links, link)
			m, err := consensus.Join(ctx, link, "p", consensus.WithID(id), consensus.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			th, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(m), throttle.WithQuotas(quotas))
			require.NoError(t, err)
			for _, tag := range []string{"acme", "beta", "gamma"} {
				ended.Go(func() {
					for l := th.ForTag(tag); ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
						l.TryAcquire(1)
					}
				})
			}
			defer func() {
				link.Cut.Store(false)
				require.NoError(t, th.Close())
				require.NoError(t, m.Leave(context.Background()))
			}()
		}
		defer ended.Wait()
		defer cancel()
		limitedBy := func(want map[string]string) {
			t.Helper()
			time.Sleep(10 * time.Second)
			out, err := tm.run(t, "top")
			require.NoError(t, err)
			got := map[string]string{}
			for _, line := range strings.Split(out, "\n")[3:] {
				if f := strings.Fields(line); len(f) == 6 {
					got[f[0]] = f[3] + " " + f[4]
				}
			}
			for tag, by := range want {
				require.Equal(t, by, got[tag], out)
			}
		}
		time.Sleep(20 * time.Second)
		limitedBy(map[string]string{"acme": "40/s rate_cap", "beta": "0/s budget"})
		out, err := tm.run(t, "top")
		require.NoError(t, err)
		require.Regexp(t, `(?m)^gamma .* (limit|demand|class) +2$`, out, "a spent budget that only lowers its class")

		_, err = tm.run(t, "pause", "set", "--for=20s", "--reason=x", "--tag=acme")
		require.NoError(t, err)
		limitedBy(map[string]string{"acme": "0/s pause", "beta": "0/s budget"})
		time.Sleep(30 * time.Second)
		_, err = tm.run(t, "pause", "set", "--for=20s", "--reason=x")
		require.NoError(t, err)
		limitedBy(map[string]string{"acme": "0/s pause", "beta": "0/s pause"})
		time.Sleep(30 * time.Second)
		limitedBy(map[string]string{"acme": "40/s rate_cap", "beta": "0/s budget"})
		links[1].Cut.Store(true)
		limitedBy(map[string]string{"acme": "40/s rate_cap", "beta": "0/s budget"})
		out, err = tm.run(t, "top")
		require.NoError(t, err)
		require.Regexp(t, `(?m)^acme .* 1$`, out, "a silent pod asks for nothing")
	})
}

// In the first seconds of a new pool nothing is granted, whatever a tag may use.
func TestTopWhileAPoolIsFrozen(t *testing.T) {
	for note, want := range map[string]string{" f:new_record.9000": "0/s +frozen", " why:no_share": "0/s +no_share"} {
		out := show(t, func(store driver.Store, pool string) {
			m := join(store, pool, "a", "1 0 100 1000000 0 0 w:3 u:0"+note, driver.Whole, 1)
			m.req.Wanted, m.req.Demand = 0, driver.Whole
			m.sync(t)
			require.NoError(t, protocol.SavePause(context.Background(), store, pool, throttle.Paused{Tag: "acme", Until: time.Now().Add(time.Minute)}))
		}, "top")
		require.Regexp(t, `(?m)^acme +0/s +0/s +`+want+" +0$", out, "a tag that is known for its pause")
	}
}

// A watch of the tags goes on until it is interrupted, below a clock.
func TestTopWatch(t *testing.T) {
	withQuotas(t, func(t *testing.T, store driver.Store, _ *throttle.Throttle) {
		ctx, stop := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer stop()
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
		require.NoError(t, tm.Run(ctx, []string{"top", "--watch", "--every=1s"}))
		require.Equal(t, 3, strings.Count(tm.out.String(), "no tag asks for anything"), tm.out.String())
		require.Equal(t, 3, strings.Count(tm.out.String(), ", every 1s\n\np: "), tm.out.String())

		_, err := tm.run(t, "top", "--watch", "--every=1ms")
		require.ErrorContains(t, err, `every is "1ms" (--every), allowed: a duration`)
	})
	_, err := newTerminal(memstore.New(), "NUMATHROTTLE_POOL=p").run(t, "top", "--watch")
	require.ErrorIs(t, err, driver.ErrNoPool, "a fault at the start ends it")
}

// Quotas of calls in flight are set as those of a rate, and top and why show calls.
func TestQuotaOfCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		member, err := consensus.Join(t.Context(), store, "p", consensus.WithID("a"), consensus.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		f, err := throttle.NewInFlight(16, throttle.WithSharer(member), throttle.WithQuotas(throttle.Quotas{
			Tags: map[string]throttle.Quota{"acme": {Reserved: 4, Total: 4}},
		}))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer func() {
			cancel()
			all.Wait()
			require.NoError(t, f.Close())
			require.NoError(t, member.Leave(t.Context()))
		}()
		for range 10 {
			all.Go(func() {
				if p, err := f.ForTag("acme").Acquire(ctx, 1); err == nil {
					<-ctx.Done()
					p.Settle(1)
				}
			})
		}
		inFlight := func() (n int) {
			synctest.Wait()
			for _, st := range f.Status().Tags {
				n += st.InUse
			}
			return n
		}
		time.Sleep(10 * time.Second)
		require.Equal(t, 4, inFlight())
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_QUOTAS={tags: {acme: {reserved: 4, total: 4}}}")
		says := func(args ...string) string {
			out, err := tm.run(t, args...)
			require.NoError(t, err, args)
			return out
		}
		require.Contains(t, says("why"), "acme has 4 of 4 calls in flight; 6 callers wait")
		top := says("top")
		require.Contains(t, top, "4 of 16 calls in flight are reserved")
		require.Regexp(t, `acme +4 +4 +4 +rate_cap +1`, top)
		require.Contains(t, says("quota", "set", "acme", "--total", "8"), "{reserved: 4, total: 8}")
		time.Sleep(3 * time.Second)
		require.Equal(t, 8, inFlight())
		says("quota", "set", "acme", "--total", "5")
		time.Sleep(3 * time.Second)
		require.Equal(t, 8, inFlight(), "calls in flight are never ended")
		_, err = tm.run(t, "quota", "set", "acme", "--reserved", "17", "--total", "none")
		require.ErrorContains(t, err, "calls in flight")
	})
}
