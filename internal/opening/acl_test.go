package opening

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// aclOf returns the rules that docs/stores.md lists: for the servers with the data, what is added for something (empty: nothing), and
// for sentinels.
func aclOf(t *testing.T, added string) (data, sentinel []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/stores.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```text\n(.*?)```").FindStringSubmatch(string(page))
	require.NotNil(t, block, "the block of the ACL")
	for line := range strings.Lines(block[1]) {
		line = strings.TrimSpace(line)
		rules, user := strings.CutPrefix(line, "user throttle on >PASSWORD ")
		name, more, _ := strings.Cut(line, ": ")
		switch {
		case user && data == nil:
			data = strings.Fields(rules)
		case user:
			sentinel = strings.Fields(rules)
		case added != "" && strings.HasPrefix(name, added):
			data = append(data, strings.Fields(more)...)
		}
	}
	require.NotEmpty(t, sentinel)
	packageDoc, err := os.ReadFile("../../pkg/consensus/redisstore/doc.go")
	require.NoError(t, err)
	for _, rule := range data {
		require.True(t, rule == "resetchannels" || strings.Contains(string(packageDoc), rule), "the package documentation lists %s, too", rule)
	}
	return data, sentinel
}

// An aclServer is a server that asks for the ACL user.
type aclServer struct {
	url   string // with user and password
	added string
	data  []string // addresses
	sents []string
}

func startACL(t *testing.T, kind string) aclServer {
	t.Helper()
	login := "throttle:" + canary + "@"
	addrs := func(list []*servers.Redis) (out []string) {
		for _, r := range list {
			out = append(out, r.Addr())
		}
		return out
	}
	switch kind {
	case "cluster":
		c := testenv.RedisCluster(t)
		return aclServer{url: "redis+cluster://" + login + c.Addrs()[0], added: "cluster", data: c.Addrs()}
	case "sentinel", "sentinel, database 2":
		s := testenv.RedisSentinel(t, 1)
		a := aclServer{url: "redis+sentinel://" + login + s.Addrs()[0] + "/" + s.MasterName(), data: addrs(s.Data()), sents: s.Addrs()}
		if kind != "sentinel" {
			a.url, a.added = a.url+"?db=2", "database"
		}
		return a
	default:
		addr := testenv.Redis(t).Addr()
		a := aclServer{url: "redis://" + login + addr, data: []string{addr}}
		if kind == "database 2" {
			a.url, a.added = a.url+"/2", "database"
		}
		return a
	}
}

// set gives the user these rules and no others, on every server.
func (a *aclServer) set(t *testing.T, data, sentinel []string) {
	t.Helper()
	for addrs, rules := range map[*[]string][]string{&a.data: data, &a.sents: sentinel} {
		for _, addr := range *addrs {
			c := redis.NewClient(&redis.Options{Addr: addr})
			args := []any{"ACL", "SETUSER", "throttle", "reset", "on", ">" + canary}
			for _, rule := range rules {
				args = append(args, rule)
			}
			require.NoError(t, c.Do(t.Context(), args...).Err())
			if addrs == &a.data {
				require.NoError(t, c.ScriptFlush(t.Context()).Err()) // so that EVAL is needed again
				_ = c.FlushAll(t.Context()).Err()                    // so that pools and markers are new; a replica refuses
			}
			require.NoError(t, c.Close())
		}
	}
}

// requireNothingDenied checks that no server has denied anything.
func (a *aclServer) requireNothingDenied(t *testing.T) {
	t.Helper()
	for _, addr := range slices.Concat(a.data, a.sents) {
		c := redis.NewClient(&redis.Options{Addr: addr})
		denied, err := c.Do(t.Context(), "ACL", "LOG").Slice()
		require.NoError(t, err)
		require.Empty(t, denied, "what %s has denied", addr)
		require.NoError(t, c.Close())
	}
}

func (a *aclServer) config(id string) Config {
	c := short(a.url, id)
	if len(a.sents) > 0 {
		c.StoreSentinelUsername, c.StoreSentinelPassword = "throttle", NewSecret(canary)
	}
	return c
}

// With exactly the ACL that the page lists everything works, and no server denies anything.
func TestRedisWithTheDocumentedACL(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"single", "database 2", "sentinel", "sentinel, database 2", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := startACL(t, kind)
			data, sentinel := aclOf(t, server.added)
			server.set(t, data, sentinel)
			var logs testkit.Book
			config := func(id, pool string) Config {
				c := server.config(id)
				c.Pool, c.Logger = pool, logs.Logger()
				return c
			}
			a, b := mustOpen(t, config("a", "p")), mustOpen(t, config("b", "p"))
			strict := config("a", "strict")
			strict.Limit = throttle.Limit{Max: 10, Strict: true}
			s := mustOpen(t, strict)
			slots := config("a", "slots")
			slots.Limit = throttle.Limit{}
			f := mustOpenInFlight(t, 10, slots)
			for _, th := range []*throttle.Throttle{a, b, s} {
				eventually(t, grants(th), "a token")
			}
			eventually(t, func() bool { _, ok := f.TryAcquire(1); return ok }, "a slot")
			operate(t, server.config("cli"), a, b)
			require.NoError(t, b.Close())
			eventually(t, func() bool { return a.Status().Lease.Share == limit.WholeShare }, "all of the limit")
			time.Sleep(4 * time.Second) // so that the subscriptions are asked whether they are there
			for _, th := range []*throttle.Throttle{a, s} {
				require.NoError(t, th.Close())
			}
			server.requireNothingDenied(t)
			require.NotContains(t, logs.String(), "NOPERM")
			require.NotContains(t, redisLog.String(), "getting command info")
		})
	}
}

// operate does what operators do, on the pool p of the processors a and b. Who joins while it is paused is paused, too.
func operate(t *testing.T, c Config, a, b *throttle.Throttle) {
	t.Helper()
	store, err := Store(t.Context(), c)
	require.NoError(t, err)
	defer store.Close()
	require.NoError(t, protocol.SavePause(t.Context(), store, "p", throttle.Paused{Reason: "by hand"}))
	for _, th := range []*throttle.Throttle{a, b} {
		eventually(t, func() bool { return th.Status().Paused != nil }, "the pause")
	}
	_, err = protocol.LoadPauses(t.Context(), store, "p")
	require.NoError(t, err)
	require.NoError(t, protocol.ClearPause(t.Context(), store, "p", ""))
	require.NoError(t, protocol.SaveOverride(t.Context(), store, "p", protocol.Override{Max: 500, Per: time.Second}))
	o, err := protocol.LoadOverview(t.Context(), store, "p")
	require.NoError(t, err)
	require.Equal(t, 500, o.Max)
	eventually(t, func() bool { return ceiling(a) == 500 }, "the override")
	require.NoError(t, protocol.ClearOverride(t.Context(), store, "p"))
	for _, th := range []*throttle.Throttle{a, b} {
		eventually(t, func() bool { return th.Status().Paused == nil }, "the end of the pause")
	}
	r, err := a.Pause(t.Context(), time.Time{}, "by a processor", throttle.WaitForReceipts(10*time.Second))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, r.Answered)
	require.Empty(t, r.Missing)
	for _, th := range []*throttle.Throttle{a, b} {
		require.False(t, grants(th)())
		require.Equal(t, throttle.ReasonPause, reason(th))
		require.Equal(t, "by a processor", th.Status().Paused.Reason)
	}
	late := c
	late.ID, late.Pool = "c", "p"
	third := mustOpen(t, late)
	eventually(t, func() bool { return third.Status().Paused != nil }, "the pause of the pool")
	require.NoError(t, third.Close())
	require.NoError(t, b.Resume(t.Context()))
	eventually(t, grants(a), "a token")
}

// Whatever is not granted, the error or the log names it, and says what to grant.
func TestRedisACLThatLacksSomething(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"single", "database 2", "sentinel", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := startACL(t, kind)
			data, sentinel := aclOf(t, server.added)
			for _, lacks := range data {
				if slices.Contains([]string{
					"resetchannels", "+asking", "+unsubscribe", "+sunsubscribe", "+ping", "+hdel", "+hget",
				}, lacks) || kind == "cluster" && (lacks == "+subscribe" || lacks == "+publish") {
					continue // is not asked for by one sync
				}
				server.set(t, slices.DeleteFunc(slices.Clone(data), func(rule string) bool { return rule == lacks }), sentinel)
				requireNamed(t, server.config("i"), lacks)
			}
			if kind == "sentinel" {
				for _, lacks := range []string{"+sentinel|get-master-addr-by-name"} {
					server.set(t, data, slices.DeleteFunc(slices.Clone(sentinel), func(rule string) bool { return rule == lacks }))
					requireNamed(t, server.config("i"), lacks)
				}
			}
		})
	}
}

func requireNamed(t *testing.T, c Config, lacks string) {
	t.Helper()
	var logs testkit.Book
	c.FailFast, c.Logger = false, logs.Logger()
	c.Pool = "p-" + strings.Trim(strings.ReplaceAll(lacks, "|", "-"), "+~&{}:*")
	th, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer closeLater(th)
	var reported string
	named := func() bool {
		if lacks == "+publish" || lacks == "+spublish" {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = th.Pause(ctx, time.Now().Add(time.Hour), "")
			store, err := Store(ctx, c)
			require.NoError(t, err)
			defer store.Close()
			if p, ok := store.(driver.Pusher); ok {
				if err := p.Push(ctx, c.Pool, []byte("news")); err != nil {
					logs.Logger().Info("pushed in vain", "error", err)
				}
			}
		}
		reported = logs.String()
		for _, how := range []string{"grant ", "grant the keys ", "grant the channels ", "needs "} {
			if strings.Contains(reported, how+lacks) {
				return true
			}
		}
		return false
	}
	deadline := time.Now().Add(15 * time.Second)
	for !named() {
		if time.Now().After(deadline) {
			require.Fail(t, "not named", "%s: %s", lacks, reported)
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.NotContains(t, reported, canary)
}
