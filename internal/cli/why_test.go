package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const acmeHeld = "acme is held at its rate cap of 60/s; 12 of 15 callers wait for it, the longest for 3.2 s"

func TestWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		join(store, "p", "a", "1 0 400 1000000 0 0 w:14 u:500 why:quota tag:acme h:12.3200..60000", driver.Whole/2, 2).sync(t)
		join(store, "p", "b", "1 0 400 1000000 0 0 w:1 u:500 why:limit h:1", driver.Whole/2, 2).sync(t)
		join(store, "full", "a", "1 0 400 1000000 0 0 w:14 u:1000 why:limit h:14", driver.Whole, 1).sync(t)
		join(store, "hard", "a", "1 0 100 1000000 0 0 w:3 u:150 e:193800 why:limit h:3", driver.Whole, 1).sync(t)
		join(store, "hardest", "a", "1 0 100 1000000 0 0 w:3 u:180 e:193800 why:limit h:3", driver.Whole, 1).sync(t)
		join(store, "idle", "a", "1 0 400 1000000 0 0", driver.Whole, 1).sync(t)
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
		said := func(want string, args ...string) {
			t.Helper()
			out, err := tm.run(t, args...)
			require.NoError(t, err)
			require.Equal(t, want, out)
		}
		said("p: "+acmeHeld+"\n", "why")
		said("full: the limit of 400/s is used in full; 14 callers wait\nidle: nothing holds callers back\n", "why", "full", "idle")
		said("hard: calls at a wait for their next tokens, while the pool uses 77 % of the limit of 100/s (hard: 19.38/s in the long run); 3 callers wait\n"+
			"hardest: the limit of 100/s (hard: 19.38/s in the long run) is used in full; 3 callers wait\n", "why", "hard", "hardest")
		said(`{"pool":"p","why":"`+acmeHeld+`","cause":"quota","level":"held"}`+"\n", "why", "--json")
		out, err := tm.run(t, "status")
		require.NoError(t, err)
		require.Contains(t, out, "why    "+acmeHeld+"\n", "status says the same")
		out, err = tm.run(t, "status", "--json")
		require.NoError(t, err)
		require.Contains(t, out, `"why":"`+acmeHeld+`","cause":"quota","level":"held"`)

		p := throttle.Paused{By: "alice", Until: time.Now().Add(12 * time.Hour)}
		require.NoError(t, protocol.SavePause(t.Context(), store, "p", p))
		said("p: paused by alice until 12:00 UTC; 15 callers wait: numathrottle resume --pool p\n", "why")
	})
}

// What fails has the exit codes of every command, and a store that is away is explained in the sentence's words.
func TestWhyNot(t *testing.T) {
	store := memstore.New()
	join(store, "orders/in", "a", "", driver.Whole, 1).sync(t)
	_, err := newTerminal(store).run(t, "why", "orders")
	require.Equal(t, ExitNotFound, ExitCode(err))
	require.ErrorContains(t, err, "the store has orders/in")

	away := &outage{Store: store}
	away.down.Store(true)
	_, err = newTerminal(away).run(t, "why", "orders/in")
	require.Equal(t, ExitStore, ExitCode(err))
	require.ErrorContains(t, err, "the store cannot be reached: ")

	tm := newTerminal(store)
	tm.open = func(context.Context, opening.Config) (driver.Store, error) {
		return nil, errors.New("WRONGPASS invalid username-password pair or user is disabled")
	}
	_, err = tm.run(t, "why", "p")
	require.EqualError(t, err, "the store rejects the password (NUMATHROTTLE_STORE_PASSWORD)")
	require.Equal(t, ExitStore, ExitCode(err))
	_, err = tm.run(t, "status", "p")
	require.Equal(t, ExitStore, ExitCode(err), "whatever the command, a store that cannot be had")
}

// A pod that hangs uses nothing, whatever it reported last, and is shown until the store removes it.
func TestASilentPodIsShown(t *testing.T) {
	fill := func(silent time.Duration) func(driver.Store, string) {
		return func(store driver.Store, pool string) {
			alive := join(store, pool, "enrich-0", "1 0 400 1000000 0 0 w:40 u:740 why:limit h:40", driver.Whole*74/100, 2)
			alive.sync(t)
			hung := join(store, pool, "enrich-1", "1 0 400 1000000 0 0 w:7 u:260 why:limit h:7", driver.Whole*26/100, 2)
			hung.sync(t)
			for range silent / time.Second {
				time.Sleep(time.Second)
				alive.sync(t)
			}
		}
	}
	const silence = "enrich-1 has been silent for 11 s; its share of 26 % may be unused for 4 s more"
	require.Equal(t, "orders/pipeline/enrich: "+silence+"; 40 callers wait\n", show(t, fill(11*time.Second), "why"))
	out := show(t, fill(11*time.Second), "status")
	require.Contains(t, out, "\nSILENT  enrich-1 for 11s; its share of 26.0 % may be unused for 4s more\n")
	require.Contains(t, out, "\npods    2, pool size 2 AGREE, 100.0 % of the limit claimed, 1 silent\n")
	require.Contains(t, out, "\nuse     74.0 % of the limit, 40 waiting\n")
	require.Regexp(t, `\nenrich-1 +26.0 % +- +- +- +silent +2 +400 per 1s +11s ago\n`, out)
	require.Regexp(t, `enrich +2 +400 per 1s +74.0 % +40 +SILENT\n`, show(t, fill(11*time.Second), "pools"))
	require.Contains(t, show(t, fill(11*time.Second), "status", "--json"), `"silent":"11s","overdue":true,"unusedFor":"4s"`)

	require.Equal(t, "orders/pipeline/enrich: the limit of 400/s is used in full; 47 callers wait\n", show(t, fill(2*time.Second), "why"), "it may be late")
	require.Contains(t, show(t, fill(17*time.Second), "status"), "\npods   1, pool size 2 DISAGREE, 74.0 % of the limit claimed\n", "it was removed")

	only := func(store driver.Store, pool string) {
		join(store, pool, "enrich-0", "1 0 400 1000000 0 0 w:40 u:1000 why:limit h:40", driver.Whole, 1).sync(t)
		time.Sleep(11 * time.Second)
	}
	require.Contains(t, show(t, only, "why"), "enrich-0, the only pod, has been silent for 11 s: it hangs, was killed, or cannot reach the store\n")
	require.Contains(t, show(t, only, "status"), "\nuse     0.0 % of the limit, 0 waiting\n")
}

// What has ended, and who has died, is shown with --all alone.
func TestWhatHasEndedIsHidden(t *testing.T) {
	fill := func(store driver.Store, pool string) {
		dead := join(store, pool, "dead", "1 0 600 60000000 0 0 w:9 u:500 why:limit", driver.Whole/2, 2)
		dead.sync(t)
		alive := join(store, pool, "alive", "1 0 600 60000000 0 0", driver.Whole/2, 2)
		for range 12 {
			alive.sync(t)
			time.Sleep(time.Second)
		}
		alive.sync(t)
		require.NoError(t, protocol.SaveOverride(context.Background(), store, pool, protocol.Override{Max: 300}))
		require.NoError(t, protocol.ClearOverride(context.Background(), store, pool))
		p := throttle.Paused{Until: time.Now().Add(time.Millisecond)}
		require.NoError(t, protocol.SavePause(context.Background(), store, pool, p))
		time.Sleep(time.Second)
		gone := join(store, "gone", "a", "1 0 600 60000000 0 0", driver.Whole, 1)
		gone.sync(t)
		require.NoError(t, store.Leave(context.Background(), driver.Leave{Pool: "gone", ID: "a", Incarnation: "1", Seq: 2, LastSeq: 1, LastNonce: 1}))
	}
	out := show(t, fill, "status")
	require.NotContains(t, out, "documents")
	out = show(t, fill, "status", "--all")
	require.Contains(t, out, "documents  limit, pause\n")
	out = show(t, fill, "pools")
	require.NotContains(t, out, "gone")
	out = show(t, fill, "pools", "--all")
	require.Contains(t, out, "gone")
	killed := func(store driver.Store, pool string) {
		fill(store, pool)
		time.Sleep(20 * time.Second)
	}
	out = show(t, killed, "status")
	require.NotContains(t, out, "\ndead")
	require.Contains(t, out, "2 dead (--all)")
	require.Contains(t, show(t, killed, "status", "--all"), "\ndead")
	require.NotContains(t, show(t, killed, "pools"), "orders", "all have died without a word")
	require.Contains(t, show(t, killed, "pools", "--all"), "orders")
	require.Regexp(t, "no pod has asked the store for 2[0-9] s: they have ended, or cannot reach it", show(t, killed, "why"))
	out = show(t, fill, "pools", "--quiet")
	require.Contains(t, out, "gone", "for scripts: all names")
}

// "The lowest" is said where there is another one.
func TestTheLowestLimit(t *testing.T) {
	both := func(a, b string) func(driver.Store, string) {
		return func(store driver.Store, pool string) {
			join(store, pool, "a", a, driver.Whole/2, 2).sync(t)
			join(store, pool, "b", b, driver.Whole/2, 2).sync(t)
		}
	}
	const minute, second, more = "1 0 600 60000000 0 0", "1 0 10 1000000 0 0", "1 0 900 60000000 0 0"
	require.Equal(t, "orders/pipeline/enrich: 600 per 1m\n", show(t, both(minute, minute), "limit", "show"))
	require.NotContains(t, show(t, both(minute, second), "limit", "show"), "lowest", "the same rate in other words")
	require.Equal(t, "orders/pipeline/enrich: 600 per 1m, the lowest that is configured\n", show(t, both(minute, more), "limit", "show"))
	require.NotContains(t, show(t, both(minute, more), "status"), "announced")
	const awaited, told = minute + " a:.1.1o", more + " a:8c"
	require.Equal(t, "orders/pipeline/enrich: 60 per 1m, until the called service announces one\n", show(t, both(awaited, more), "limit", "show"))
	require.Equal(t, "orders/pipeline/enrich: 300 per 1m, which the called service announces\n", show(t, both(awaited, told), "limit", "show"))
	require.Regexp(t, "\nlimit +600 per 1m, the lowest that is configured\nannounced +300 per 1m by the called service\n",
		show(t, both(minute, told), "status"))
	for notes, want := range map[[2]string]string{
		{awaited, told}: `"announced":{"max":300,"per":"1m","followed":true}`, {minute, told}: `"announced":{"max":300,"per":"1m"}`,
	} {
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, []byte(show(t, both(notes[0], notes[1]), "status", "--output", "json"))))
		require.Contains(t, compact.String(), want)
	}
}
