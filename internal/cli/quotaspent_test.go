package cli

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// spend makes a pool "p" in which tags have spent of windows that begin now.
func spend(t *testing.T, store driver.Store, draws ...driver.Draw) {
	t.Helper()
	m := join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1)
	m.req.Draws = draws
	m.sync(t)
	m.sync(t) // NATS knows the time from the second one on
}

// spent is a draw of a tag that has spent so much in a window. What was seen counts also in a store that has just begun.
func spent(key uint64, tokens int64, start time.Time, window time.Duration) driver.Draw {
	return driver.Draw{Key: key, Budgets: []driver.BudgetDraw{
		{Amount: wire.MaxAmount, Start: start.UnixMicro(), End: start.Add(window).UnixMicro(), Seen: tokens},
	}}
}

func TestQuotaSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		midnight := time.Now()
		const hour, day = time.Hour, 24 * time.Hour
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=100", "NUMATHROTTLE_QUOTAS={tags: {acme: {budgets: [{amount: 100, per: hour}, "+
			"{amount: 5e6, per: day}]}, beta: {total: 40}, zeta: {}}, match: [{tag: free/*, total: 1, budgets: [{amount: 7, per: day}]}], "+
			"other: {budgets: [{amount: 9, per: day, zone: Asia/Tokyo}]}}")
		spend(t, store, driver.Draw{Key: tagname.Key("beta"), Total: 40, Per: time.Second, Burst: 1, Ask: 1})
		out, err := tm.run(t, "quota", "spent")
		require.NoError(t, err)
		require.Equal(t, "p: <empty>: nothing is spent of a budget\n", out)

		store = memstore.New()
		tm.open = newTerminal(store).open
		spend(t, store, spent(tagname.Key("acme"), 120, midnight, day), spent(tagname.Key("zeta"), 3, midnight, hour),
			spent(tagname.OtherKey, 8, midnight.Add(-9*hour), day), spent(tagname.Key("free/x"), 5, midnight, day))
		const acme = "p: tag acme 120 of 5000000 tokens from 2000-01-01T00:00:00Z to 2000-01-02T00:00:00Z\n"
		out, err = tm.run(t, "quota", "spent")
		require.NoError(t, err)
		require.Equal(t, acme+"p: tag zeta 3 tokens from 2000-01-01T00:00:00Z to 2000-01-01T01:00:00Z\n"+
			"p: all other tags 8 of 9 tokens from 1999-12-31T15:00:00Z to 2000-01-01T15:00:00Z\n"+
			"p: tag #fd8fb7ef1f469b6c 5 tokens from 2000-01-01T00:00:00Z to 2000-01-02T00:00:00Z\n", out)

		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"free/x", "acme", "none"}, acme + "p: tag free/x 5 of 7 tokens from 2000-01-01T00:00:00Z to 2000-01-02T00:00:00Z\n"},
			{[]string{""}, "p: all other tags 8 of 9 tokens from 1999-12-31T15:00:00Z to 2000-01-01T15:00:00Z\n"},
			{[]string{"none"}, "p: <empty>: nothing is spent of a budget\n"},
			{[]string{"none", "--json"}, `{"pool":"p","tags":[]}` + "\n"},
			{
				[]string{"--json", "acme"}, `{"pool":"p","tags":[{"tag":"acme","windows":[{"start":"2000-01-01T00:00:00Z",` +
					`"end":"2000-01-02T00:00:00Z","tokens":120,"amount":5000000}]}]}` + "\n",
			},
		} {
			out, err = tm.run(t, append([]string{"quota", "spent"}, c.args...)...)
			require.NoError(t, err)
			require.Equal(t, c.want, out, c.args)
		}
		out, err = tm.run(t, "quota", "spent", "--json")
		require.NoError(t, err)
		require.Contains(t, out, `{"tag":"","hash":"fd8fb7ef1f469b6c","windows":[{"start":"2000-01-01T00:00:00Z","end":"2000-01-02T00:00:00Z","tokens":5}]}`)
	})
}

func TestQuotaSpentFaults(t *testing.T) {
	_, err := newTerminal(memstore.New(), "NUMATHROTTLE_POOL=p").run(t, "quota", "spent")
	require.ErrorIs(t, err, driver.ErrNoPool)
	store := listless{memstore.New()}
	spend(t, store)
	_, err = newTerminal(store, "NUMATHROTTLE_POOL=p").run(t, "quota", "spent")
	require.ErrorIs(t, err, driver.ErrNoTagBuckets)
	require.Equal(t, ExitFailed, ExitCode(err))
}

// What is set is what is printed after that; the zone is that of the budget, if it is known.
func TestQuotaSpentSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		midnight := time.Now()
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=100", "USER=ann", "NUMATHROTTLE_QUOTAS={tags: {acme: {budgets: "+
			"[{amount: 100, per: hour}, {amount: 5e6, per: day, zone: Asia/Tokyo}]}}, match: [{tag: free/*, total: 1, budgets: [{amount: 7, per: day}]}], "+
			"other: {budgets: [{amount: 9, per: month}]}}")
		_, err := tm.run(t, "quota", "spent", "set", "acme", "--per=day", "--amount=1")
		require.ErrorIs(t, err, driver.ErrNoPool)
		spend(t, store, spent(tagname.Key("acme"), 120, midnight.Add(-9*time.Hour), 24*time.Hour))
		const tokyo = " from 1999-12-31T15:00:00Z to 2000-01-01T15:00:00Z\n"
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"acme", "--per=day", "--amount=5e3", "--reason=bill"}, "p: tag acme 5000 of 5000000 tokens" + tokyo},
			{[]string{"acme", "--per=day", "--amount=7"}, "p: tag acme 7 of 5000000 tokens" + tokyo},
			{[]string{"acme", "--per=hour", "--amount=0"}, "p: tag acme 0 of 100 tokens from 2000-01-01T00:00:00Z to 2000-01-01T01:00:00Z\n"},
			{[]string{"free/x", "--per=day", "--amount=6"}, "p: tag free/x 6 of 7 tokens from 2000-01-01T00:00:00Z to 2000-01-02T00:00:00Z\n"},
			{[]string{"new", "--per=day", "--amount=6", "--zone=Asia/Tokyo"}, "p: tag new 6 tokens" + tokyo},
			{[]string{"--other", "--per=month", "--amount=8"}, "p: all other tags 8 of 9 tokens from 2000-01-01T00:00:00Z to 2000-02-01T00:00:00Z\n"},
			{
				[]string{"acme", "--per=day", "--amount=9", "--json"},
				`{"pool":"p","tag":"acme","windows":[{"start":"1999-12-31T15:00:00Z","end":"2000-01-01T15:00:00Z","tokens":9,"amount":5000000}]}` + "\n",
			},
		} {
			out, err := tm.run(t, append([]string{"quota", "spent", "set"}, c.args...)...)
			require.NoError(t, err, c.args)
			require.Equal(t, c.want, out, c.args)
		}
		out, err := tm.run(t, "quota", "spent")
		require.NoError(t, err)
		require.Equal(t, "p: tag acme 9 of 5000000 tokens"+tokyo+"p: tag acme 0 of 100 tokens from 2000-01-01T00:00:00Z to 2000-01-01T01:00:00Z\n"+
			"p: all other tags 8 of 9 tokens from 2000-01-01T00:00:00Z to 2000-02-01T00:00:00Z\n"+
			"p: tag #"+fmt.Sprintf("%016x", tagname.Key("new"))+" 6 tokens"+tokyo+
			"p: tag #fd8fb7ef1f469b6c 6 tokens from 2000-01-01T00:00:00Z to 2000-01-02T00:00:00Z\n", out)
		docs, _, err := store.Load(t.Context(), "p")
		require.NoError(t, err)
		require.Len(t, docs, 1)
		require.Contains(t, string(docs[0].Body), `"by":"ann@`)
		require.Contains(t, string(docs[0].Body), `"tag":"acme","start_us":946652400000000,"end_us":946738800000000,"tokens":9`)

		const command = "numathrottle quota spent set: "
		for args, want := range map[string]string{
			"acme --amount=1":                          command + "--per is missing, allowed: hour, day or month",
			"acme --per=week --amount=1":               command + `--per is "week", allowed: hour, day or month`,
			"acme --per=day":                           command + "--amount is missing, allowed: a whole number from 0 to 4e15",
			"acme --per=day --amount=-1":               command + `--amount is "-1", allowed: a whole number from 0 to 4e15`,
			"acme --per=day --amount=1.5":              command + `--amount is "1.5", allowed: a whole number from 0 to 4e15`,
			"acme --per=day --amount=4000000000000001": command + `--amount is "4000000000000001"`,
			"acme --per=day --amount=NaN":              command + `--amount is "NaN"`,
			"acme --per=day --amount=1 --zone=Mars":    command + `--zone is "Mars", allowed: a time zone such as Europe/Berlin`,
			"acme beta --per=day --amount=1":           command + `"beta" is one argument too many, allowed: one TAG`,
			"acme --other --per=day --amount=1":        command + `--other is set, and so is the tag "acme", allowed: one of them`,
		} {
			_, err := tm.run(t, append([]string{"quota", "spent", "set"}, strings.Fields(args)...)...)
			require.ErrorContains(t, err, want, args)
		}
		_, err = tm.run(t, "quota", "spent", "set", "acme", "--per=day", "--amount=1", "--reason=a\nb")
		require.Equal(t, ExitRefused, ExitCode(err), err)
		_, err = tm.run(t, "quota", "spent", "set", "acme", "--per=day")
		require.Equal(t, ExitUsage, ExitCode(err))
	})
}

func TestQuotaSpentOnRealStores(t *testing.T) {
	onRealStores(t, func(t *testing.T, url string) {
		tm := newTerminal(nil, "NUMATHROTTLE_STORE="+url, "NUMATHROTTLE_POOL=p")
		_, err := tm.run(t, "quota", "spent", "acme")
		require.ErrorIs(t, err, driver.ErrNoPool)
		store, err := tm.connected(t)
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close()) }()
		spend(t, store, spent(tagname.Key("acme"), 120, time.Now().Truncate(time.Hour).Add(-time.Hour), 240*time.Hour))
		out, err := tm.run(t, "quota", "spent", "acme")
		require.NoError(t, err)
		require.Contains(t, out, "p: tag acme 120 tokens from ")
		_, err = tm.run(t, "quota", "spent", "set", "beta", "--per=month", "--amount=77", "--other=false")
		require.NoError(t, err)
		out, err = tm.run(t, "quota", "spent", "beta")
		require.NoError(t, err)
		require.Contains(t, out, "p: tag beta 77 tokens from ")
	})
}
