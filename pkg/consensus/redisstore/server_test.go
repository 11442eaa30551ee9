package redisstore

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func TestScriptFlush(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	for n := range uint64(3) {
		require.NoError(t, c.ScriptFlush(t.Context()).Err())
		granted(t, s, request("p", "a", n+1, 1))
	}
	require.NoError(t, c.ScriptFlush(t.Context()).Err())
	require.NoError(t, s.Leave(t.Context(), leaving("p", "a", 4)))
}

// TestOtherData: what is not a pool is an error, and stays as it is.
func TestOtherData(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	pool, marker := s.keys("p")
	del := func(t *testing.T, key string) { require.NoError(t, c.Del(t.Context(), key).Err()) }
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T)
		want  string
		leave bool // whether Leave, Save and Load notice too
	}{
		{"string", func(t *testing.T) { require.NoError(t, c.Set(t.Context(), pool, "x", 0).Err()) }, "another type", true},
		{"list", func(t *testing.T) { del(t, pool); require.NoError(t, c.LPush(t.Context(), pool, "x").Err()) }, "another type", true},
		{"another hash", func(t *testing.T) { del(t, pool); c.HSet(t.Context(), pool, "x", "y") }, "not a pool", true},
		{"newer format", func(t *testing.T) { c.HSet(t.Context(), pool, "meta", "2 something else") }, "not of format 1", true},
		{"meta of no format", func(t *testing.T) { c.HSet(t.Context(), pool, "meta", "") }, "not of format 1", true},
		{"a document alone", func(t *testing.T) { del(t, pool); c.HSet(t.Context(), pool, documentField+"limit", "1 x") }, "not a pool", true},
		{"permits of another format", func(t *testing.T) { c.HSet(t.Context(), pool, "permits", "2 something else") }, "permits are not", true},
		{"own row", func(t *testing.T) { c.HSet(t.Context(), pool, "a\x001", "0 1 2 x") }, "a row is not", true},
		{"marker of another type", func(t *testing.T) { del(t, pool); del(t, marker); c.LPush(t.Context(), marker, "x") }, "another type", false},
		{"newer marker", func(t *testing.T) { del(t, pool); c.Set(t.Context(), marker, "2 a 0 0", 0) }, "marker", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			del(t, pool)
			del(t, marker)
			granted(t, s, request("p", "a", 1, 1))
			test.spoil(t)
			before := everything(t, c)
			_, err := s.Sync(t.Context(), request("p", "a", 2, 1))
			require.ErrorIs(t, err, driver.ErrWrongAnswer)
			require.ErrorContains(t, err, `pool "p"`)
			require.ErrorContains(t, err, test.want)
			if test.leave && test.name != "own row" { // a reservation looks at no row and no marker
				_, err = s.Reserve(t.Context(), reservation("p"))
				require.ErrorIs(t, err, driver.ErrWrongAnswer)
				require.ErrorContains(t, err, test.want)
			}
			err = s.Leave(t.Context(), leaving("p", "a", 3))
			if test.leave {
				require.ErrorIs(t, err, driver.ErrWrongAnswer)
				require.ErrorContains(t, err, test.want)
				if _, _, err = s.Load(t.Context(), "p"); !strings.HasPrefix(test.name, "permits") { // which Load does not look at
					require.ErrorIs(t, err, driver.ErrWrongAnswer)
					require.ErrorContains(t, err, `load of pool "p"`)
				}
			} else {
				require.NoError(t, err)
			}
			_, err = s.Save(t.Context(), "p", driver.DocumentReport{Name: "limit", Version: 1, Body: []byte("x")})
			switch {
			case strings.HasPrefix(test.name, "own"):
				return // which Save does not look at
			case test.leave:
				require.ErrorIs(t, err, driver.ErrWrongAnswer)
				require.ErrorContains(t, err, test.want)
			default:
				require.ErrorIs(t, err, driver.ErrNoPool)
			}
			require.Equal(t, before, everything(t, c))
		})
	}
}

// TestMalformedRow: a row that nothing can be made of stops the pool, and stays.
func TestMalformedRow(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c, WithLongestLease(longest))
	pool, _ := s.keys("p")
	granted(t, s, request("p", "a", 1, 1))
	require.NoError(t, c.HSet(t.Context(), pool, "b\x001", "0 -1 2 3").Err())
	n := uint64(1)
	waitFor(t, "removal comes to the row", func() bool {
		n++
		_, err := s.Sync(t.Context(), request("p", "a", n, 1))
		require.ErrorIs(t, err, driver.ErrWrongAnswer)
		require.ErrorContains(t, err, "; delete the pool's key")
		return strings.Contains(err.Error(), "a row is not of format 1: b/1; delete the pool's key "+pool)
	})
	require.Equal(t, "0 -1 2 3", c.HGet(t.Context(), pool, "b\x001").Val())
}

// reservation asks for one slot.
func reservation(pool string) driver.Reserve {
	return driver.Reserve{Pool: pool, Count: 1, Spacing: time.Second, Lease: longest}
}

func TestPermissions(t *testing.T) {
	const password = "canary-7f3a"
	server := testenv.Redis(t)
	admin := client(t, ClientOptions(server.Addr()))
	as := func(t *testing.T, rules ...any) *Store {
		args := append([]any{"ACL", "SETUSER", t.Name(), "reset", "on", ">" + password}, rules...)
		require.NoError(t, admin.Do(t.Context(), args...).Err())
		opts := ClientOptions(server.Addr())
		opts.Username, opts.Password = t.Name(), password
		return New(client(t, opts), WithLongestLease(longest))
	}
	documented := func(without string) (rules []any) {
		rules = []any{"~{numathrottle:*}:*"}
		for command := range strings.FieldsSeq("+eval +evalsha +time +info +hget +hmget +hgetall +hlen +hset +hdel +pexpire +get +set") {
			if command != without {
				rules = append(rules, command)
			}
		}
		return rules
	}
	t.Run("documented", func(t *testing.T) {
		s := as(t, documented("")...)
		granted(t, s, request("p", "a", 1, 1))
		granted(t, s, request("p", "b", 1, 1))
		n := uint64(1)
		waitFor(t, "b is removed, which takes +hdel", func() bool {
			n++
			return granted(t, s, request("p", "a", n, 1)).Live == 1
		})
		require.NoError(t, s.Leave(t.Context(), leaving("p", "a", n+1)))
		_, err := s.Save(t.Context(), "p", driver.DocumentReport{Name: "limit", Version: 1, Body: []byte("x")})
		require.NoError(t, err)
		_, _, err = s.Load(t.Context(), "p")
		require.NoError(t, err)
		_, err = s.TagBuckets(t.Context(), "p")
		require.NoError(t, err)
		now := time.Now().UnixMicro()
		require.NoError(t, s.SetSpent(t.Context(), "p", driver.SpentReport{Key: 1, Start: now - 3_600_000_000, End: now + 3_600_000_000}))
		_, err = s.Reserve(t.Context(), reservation("p"))
		require.NoError(t, err)
	})
	t.Run("news", func(t *testing.T) {
		rules := append(documented(""), "&{numathrottle:*}:push*", "+subscribe", "+unsubscribe", "+publish", "+ping")
		s, received := as(t, rules...), make(chan string, 1)
		stop, err := s.Watch(t.Context(), "p", func(news []byte) { received <- string(news) })
		require.NoError(t, err)
		t.Cleanup(stop)
		require.NoError(t, s.Push(t.Context(), "p", []byte("news")))
		require.Equal(t, "news", <-received)
	})
	t.Run("no news", func(t *testing.T) {
		for i, rules := range [][]any{documented(""), append(documented(""), "+subscribe", "+publish", "resetchannels")} {
			s := as(t, rules...)
			_, err := s.Watch(t.Context(), "p", func([]byte) {})
			require.ErrorContains(t, err, "the ACL user lacks a permission")
			require.NotContains(t, err.Error(), password)
			require.ErrorContains(t, s.Push(t.Context(), "p", []byte("news")), "the ACL user lacks a permission")
			granted(t, s, request("news", strconv.Itoa(i), 1, 1))
		}
	})
	for name, c := range map[string]struct {
		rules []any
		want  string
	}{
		"no INFO": {documented("+info"), "+info"}, "no writes": {documented("+hset"), "ACL"},
		"other keys": {append([]any{"~other:*"}, documented("")[1:]...), "ACL"},
	} {
		t.Run(name, func(t *testing.T) {
			s, before := as(t, c.rules...), everything(t, admin)
			_, err := s.Sync(t.Context(), request("q", "a", 1, 1))
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, driver.ErrWrongAnswer)
			require.NotContains(t, err.Error(), password)
			require.Equal(t, before, everything(t, admin), "nothing is written")
			if name == "other keys" {
				_, _, err = s.Load(t.Context(), "q")
				require.ErrorContains(t, err, "ACL")
			}
		})
	}
	t.Run("wrong password", func(t *testing.T) {
		opts := ClientOptions(server.Addr())
		opts.Username, opts.Password = "nobody", password
		_, err := New(client(t, opts)).Sync(t.Context(), request("p", "a", 1, 1))
		require.Error(t, err)
		require.NotContains(t, err.Error(), password)
	})
}

// TestFullServer: a server without memory refuses, and nothing is half written.
func TestFullServer(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	s := New(c)
	for n := range uint64(3) {
		granted(t, s, request("p", "a", n+1, 1))
	}
	before := everything(t, c)
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := s.Sync(t.Context(), request("p", "a", 4, 1))
	require.ErrorContains(t, err, "OOM")
	require.NotErrorIs(t, err, driver.ErrWrongAnswer)
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.Equal(t, before, everything(t, c))
	granted(t, s, request("p", "a", 4, 1))
}

func TestWarnsOnceAboutEviction(t *testing.T) {
	for policy, warnings := range map[string]int{"noeviction": 0, "allkeys-lru": 1, "volatile-ttl": 1} {
		t.Run(policy, func(t *testing.T) {
			server := testenv.Redis(t, servers.WithRedisConfig("maxmemory-policy "+policy))
			var log bytes.Buffer
			s := New(client(t, ClientOptions(server.Addr())), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			for n := range uint64(5) {
				granted(t, s, request("p", "a", n+1, 1))
			}
			granted(t, s, request("q", "a", 1, 1))
			require.Equal(t, warnings, strings.Count(log.String(), "level=WARN"), log.String())
			require.Equal(t, warnings, strings.Count(log.String(), "maxmemory_policy="+policy), log.String())
		})
	}
}

// TestAbsentServer: errors come within the client's timeouts and are passing.
func TestAbsentServer(t *testing.T) {
	server := testenv.Redis(t)
	c := redis.NewUniversalClient(ClientOptions(server.Addr()))
	defer c.Close()
	s := New(c)
	granted(t, s, request("p", "a", 1, 1))
	opts := ClientOptions(server.Addr())
	opts.ReadTimeout = time.Minute // only the context bounds its calls
	patient := redis.NewUniversalClient(opts)
	defer patient.Close()
	require.NoError(t, patient.Ping(t.Context()).Err())
	requireFails := func(s *Store, timeout time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		began := time.Now()
		_, err := s.Sync(ctx, request("p", "a", 2, 1))
		require.Error(t, err)
		require.Less(t, time.Since(began), 10*time.Second)
		var bad *driver.RequestError
		require.NotErrorAs(t, err, &bad)
		require.NotErrorIs(t, err, driver.ErrWrongAnswer)
		require.Error(t, s.Leave(ctx, leaving("p", "a", 3)))
		_, _, err = s.Load(ctx, "p")
		require.Error(t, err)
		require.NotErrorIs(t, err, driver.ErrNoPool)
		_, err = s.Save(ctx, "p", driver.DocumentReport{Name: "limit", Version: 1, Body: []byte("x")})
		require.Error(t, err)
		require.NotErrorIs(t, err, driver.ErrNoPool)
	}
	require.NoError(t, server.Stop(t.Context()))
	requireFails(New(patient), 100*time.Millisecond)
	requireFails(s, time.Minute)
	require.NoError(t, server.Kill())
	requireFails(s, time.Minute)
	require.NoError(t, server.Restart(t.Context()))
	waitFor(t, "the restarted server freezes the pool", func() bool {
		answer, err := s.Sync(t.Context(), request("p", "a", 3, 1))
		return err == nil && answer.Frozen > 0
	})
}

// A server that was away for many tries is noticed at the first one after that: the
// client's pool must not give up dialling.
func TestServerIsNoticedAtOnce(t *testing.T) {
	server := testenv.Redis(t)
	c := redis.NewUniversalClient(ClientOptions(server.Addr()))
	defer c.Close()
	s := New(c)
	granted(t, s, request("p", "a", 1, 1))
	require.NoError(t, server.Kill())
	for range 100 {
		_, err := s.Sync(t.Context(), request("p", "a", 2, 1))
		require.ErrorContains(t, err, "connection refused")
	}
	require.NoError(t, server.Restart(t.Context()))
	_, err := s.Sync(t.Context(), request("p", "a", 2, 1))
	require.NoError(t, err)
}
