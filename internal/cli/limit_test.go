package cli

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// fromThenOn is when what was saved is in force.
const fromThenOn = ", from the next sync of each pod on\n"

func TestLimit(t *testing.T) { synctest.Test(t, testLimit) }

func testLimit(t *testing.T) {
	store := memstore.New()
	join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	tm := newTerminal(store, "NUMATHROTTLE_POOL=other")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"p: 600 per 1m\n", []string{"limit", "show", "--pool=p"}},
		{"p: 300 per 1m" + fromThenOn, []string{"limit", "set", "--pool=p", "--max=300"}},
		{"p: 300 per 1m, an override\n", []string{"limit", "show", "--pool=p"}},
		{
			`{"pool":"p","limit":{"max":300,"per":"1m"},"override":{"max":300,"per":"1m"}}` + "\n",
			[]string{"limit", "show", "--json", "--pool=p"},
		},
		{"p: 5 per 1s" + fromThenOn, []string{"--pool=p", "limit", "set", "--max", "5", "--per", "1s"}},
		{
			"p: 7 per 1s until 2000-01-01T02:00:00Z" + fromThenOn,
			[]string{"limit", "set", "--pool=p", "--max=7", "--per=1s", "--for=2h", "--reason=a sale", "--by=ann"},
		},
		{"p: 7 per 1s, an override until 2000-01-01T02:00:00Z by ann: a sale\n", []string{"limit", "get", "--pool=p"}},
		{
			`{"pool":"p","limit":{"max":7,"per":"1s"},"override":{"max":7,"per":"1s","until":"2000-01-01T02:00:00Z","by":"ann","reason":"a sale"}}` + "\n",
			[]string{"limit", "show", "-o", "json", "--pool=p"},
		},
		{"p: the override of 7 has ended; 600 per 1m\n", []string{"limit", "clear", "--pool=p"}},
		{"p: no override was in force; 600 per 1m\n", []string{"limit", "clear", "--pool=p"}},
		{`{"pool":"p","limit":{"max":600,"per":"1m"},"override":null}` + "\n", []string{"limit", "show", "--json", "--pool=p"}},
	} {
		out, err := tm.run(t, c.args...)
		require.NoError(t, err, c.args)
		require.Equal(t, c.want, out)
	}
	_, err := tm.run(t, "limit", "set", "--pool=p", "--max=38401")
	require.ErrorContains(t, err, `consensus: Max per 1m is 38401, allowed: at most 64 times 600 per 1m, which pod "a" is configured with`)
	require.Equal(t, ExitRefused, ExitCode(err))
	later := driver.DocumentReport{Name: "limit", Version: 1 << 60, Base: versionOf(t, store), Body: []byte("of a later version")}
	_, err = store.Save(t.Context(), "p", later)
	require.NoError(t, err)
	_, err = tm.run(t, "limit", "show", "--pool=p")
	require.ErrorContains(t, err, "is not an override")
	require.Equal(t, ExitFailed, ExitCode(err), "the store has answered, and the same will not work later")
	out, err := tm.run(t, "limit", "clear", "--pool=p")
	require.NoError(t, err, "whatever is on record")
	require.Equal(t, "p: an override that this command cannot read has ended; 600 per 1m\n", out)
}

// Where all pods were killed their rows stay, for nobody removes them. A limit that is set there would surprise those that join later.
func TestLimitOfAPoolWhosePodsAreDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
		time.Sleep(time.Hour)
		for _, args := range [][]string{{"limit", "set", "--max=5"}, {"debt", "forgive"}} {
			_, err := newTerminal(store, "NUMATHROTTLE_POOL=p").run(t, args...)
			require.ErrorContains(t, err, "nobody is in the pool")
			require.NotEqual(t, 0, ExitCode(err))
		}
	})
}

// Only where tokens are issued one by one a higher rate takes longer.
func TestLimitOfAStrictPool(t *testing.T) {
	for strict, want := range map[bool]string{
		false: "p: 20 per 1s" + fromThenOn,
		true:  "p: 20 per 1s, from the next sync of each pod on; a higher rate of this strict limit within 15 s\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			m, err := consensus.Join(t.Context(), store, "p", consensus.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			th, err := throttle.New(throttle.Limit{Max: 10, Strict: strict}, throttle.WithSharer(m), throttle.OnClose(m.Leave))
			require.NoError(t, err)
			time.Sleep(3 * time.Second)
			out, err := newTerminal(store, "NUMATHROTTLE_POOL=p").run(t, "limit", "set", "--max=20")
			require.NoError(t, err)
			require.Equal(t, want, out)
			require.NoError(t, th.Close())
		})
	}
}

// A limit is set where somebody named the pool, and where somebody is in it.
func TestLimitIsSetWhereItIsMeant(t *testing.T) {
	store := memstore.New()
	join(store, "orders/in", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	gone := join(store, "gone", "a", "1 0 600 60000000 0 0", driver.Whole, 1)
	gone.sync(t)
	require.NoError(t, store.Leave(t.Context(), driver.Leave{Pool: "gone", ID: "a", Incarnation: "1", Seq: 2, LastSeq: 1, LastNonce: 1}))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, ExitUsage, "no pool is named: --pool is missing; the store has gone, orders/in"},
		{[]string{"--pool=order"}, ExitNotFound, `numathrottle limit set: the pool "order" has no record; the store has orders/in, gone`},
		{[]string{"--pool=gone"}, ExitRefused, `nobody is in the pool "gone"`},
		{[]string{"--pool=orders/in", "--reason=a\nb"}, ExitRefused, "reason of the override"},
		{[]string{"--pool=orders/in"}, 0, ""},
	} {
		_, err := newTerminal(store).run(t, append([]string{"limit", "set", "--max=5"}, c.args...)...)
		require.Equal(t, c.code, ExitCode(err), c.args)
		if c.code > 0 {
			require.ErrorContains(t, err, c.want)
		}
	}
	override, err := protocol.LoadOverride(t.Context(), store, "gone")
	require.NoError(t, err)
	require.Zero(t, override)
}

// Without --by it is the user at this machine.
func TestAuthor(t *testing.T) {
	store := memstore.New()
	join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	for user, want := range map[string]string{"": "", "USER=ann": "ann@" + host, "LOGNAME=bob": "bob@" + host, "USER=a\nb": ""} {
		_, err := newTerminal(store, "NUMATHROTTLE_POOL=p", user).run(t, "limit", "set", "--max=5")
		require.NoError(t, err)
		o, err := protocol.LoadOverride(t.Context(), store, "p")
		require.NoError(t, err)
		require.Equal(t, want, o.By, user)
	}
	tm := newTerminal(store, "NUMATHROTTLE_POOL=p") // as in a container
	tm.user = "carl"
	_, err = tm.run(t, "limit", "set", "--max=5")
	require.NoError(t, err)
	o, err := protocol.LoadOverride(t.Context(), store, "p")
	require.NoError(t, err)
	require.Equal(t, "carl@"+host, o.By)
	require.NotEmpty(t, systemUser())
}

// Why a limit cannot be changed: it counts calls in flight, or nobody tells one.
func TestLimitThatCannotBeChanged(t *testing.T) {
	for note, why := range map[string]string{
		"1 n:30":               "the pool limits calls in flight, and only a limit of tokens can be overridden",
		"2 of a later version": "no live pod has reported a limit that could be overridden",
	} {
		store := memstore.New()
		join(store, "p", "a", note, driver.Whole, 1).sync(t)
		_, err := newTerminal(store, "NUMATHROTTLE_POOL=p").run(t, "limit", "set", "--max=5")
		require.ErrorContains(t, err, why)
		require.Equal(t, ExitRefused, ExitCode(err))
	}
}

// An override that nobody is there to complete has no period.
func TestLimitWithoutAPeriod(t *testing.T) {
	store := memstore.New()
	join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	_, err := store.Save(t.Context(), "p", driver.DocumentReport{Name: "limit", Version: 1, Body: []byte(`{"max":20}`)})
	require.NoError(t, err)
	require.NoError(t, store.Leave(t.Context(), driver.Leave{Pool: "p", ID: "a", Incarnation: "1", Seq: 2, LastSeq: 1, LastNonce: 1}))
	for _, args := range [][]string{{"limit", "show"}, {"status"}, {"pools", "--all"}} {
		out, err := newTerminal(store, "NUMATHROTTLE_POOL=p").run(t, args...)
		require.NoError(t, err)
		require.Contains(t, out, "20 per configured period")
	}
}

func versionOf(t *testing.T, store driver.Store) driver.Version {
	t.Helper()
	docs, _, err := store.Load(t.Context(), "p")
	require.NoError(t, err)
	return docs[0].Version
}

// onRealStores runs f on the URL of a store of each kind.
func onRealStores(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	for name, start := range map[string]func(t *testing.T) (url string){
		"redis": func(t *testing.T) string {
			t.Helper()
			return "redis://:" + canary + "-s3@" + testenv.Redis(t, servers.WithPassword(canary+"-s3")).Addr()
		},
		"nats": func(t *testing.T) string { t.Helper(); return testenv.NATS(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, start(t))
		})
	}
}

// A real limiter on a real store is seen, and heeds what is set.
func TestOnRealStores(t *testing.T) {
	onRealStores(t, func(t *testing.T, url string) {
		th, err := numathrottle.Open(t.Context(), numathrottle.Config{
			Limit: throttle.Limit{Max: 600, Per: time.Minute}, Store: url, Pool: "ns/p/v", ID: "pod-0", Lease: driver.MinLease, FailFast: true,
		})
		require.NoError(t, err)
		defer th.Close()
		tm := newTerminal(nil, "NUMATHROTTLE_POOL=ns/p/v", "NUMATHROTTLE_STORE="+url)
		var out string
		require.Eventually(t, func() bool { // with its second sync the processor tells its limit
			out, err = tm.run(t, "status")
			require.NoError(t, err)
			return strings.Contains(out, "600 per 1m")
		}, 30*time.Second, 10*time.Millisecond)
		require.Regexp(t, `pod-0 .* 600 per 1m +\d`, out)

		_, err = tm.run(t, "limit", "set", "--max=300")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return th.Status().Lease.Ceiling == 300 }, 30*time.Second, 10*time.Millisecond)
		out, err = tm.run(t, "status", "--json")
		require.NoError(t, err)
		require.Contains(t, out, `"override":{"max":300,"per":"1m"}`)
		_, err = tm.run(t, "limit", "clear")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return th.Status().Lease.Ceiling != 300 }, 30*time.Second, 10*time.Millisecond)
		require.NoError(t, th.Close())
		out, err = tm.run(t, "status")
		require.NoError(t, err)
		require.NotContains(t, out, "pod-0")
		requireAge(t, url)
	})
}

// requireAge requires that a store tells for how long nobody has synced with a pool.
func requireAge(t *testing.T, url string) {
	t.Helper()
	store, err := numathrottle.OpenStore(t.Context(), numathrottle.Config{Store: url})
	require.NoError(t, err)
	defer func() { _ = store.Close() }()
	ager, ok := store.(driver.Ager)
	require.True(t, ok)
	_, err = ager.Age(t.Context(), "nobody/here")
	require.ErrorIs(t, err, driver.ErrNoPool)
	require.Eventually(t, func() bool {
		age, err := ager.Age(t.Context(), "ns/p/v")
		require.NoError(t, err)
		require.Less(t, age, time.Hour)
		return age > 0
	}, 30*time.Second, 10*time.Millisecond)
}
