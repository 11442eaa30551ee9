package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// Whatever is kept in cookies is sent to every port of the host, where others may listen: it opens nothing.
func TestNoCookieOpensASession(t *testing.T) {
	store := memstore.New()
	join(t, store, "p", "a", "1 0 600 60000000 0 0", driver.Whole)
	_, c := serve(t, store, token)
	resp, err := c.Post(c.url+"/api/login", "application/json", strings.NewReader(`{"token":"`+token+`","by":"ann"}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
	for _, path := range []string{"/api/pools", "/api/pool?name=p"} {
		resp, _ := c.get(t, path)
		require.Equal(t, 401, resp.StatusCode, "with every cookie of the login, and nothing else")
	}
	code, _ := c.post(t, "/api/pause", `{"pool":"p","reason":"r"}`)
	require.Equal(t, 401, code)
	_, text := c.get(t, "/api/session")
	require.JSONEq(t, `{"store":"","login":true,"in":false,"by":""}`, text)
}

// A page of another site is refused whatever it asks for, but a link to the page may be followed.
func TestPagesOfOtherSites(t *testing.T) {
	store := newCounted()
	join(t, store, "p", "a", "1 0 600 60000000 0 0", driver.Whole)
	k, c := serve(t, store, "")
	for _, path := range []string{"/", "/api/session", "/api/pools", "/api/pool?name=p"} {
		for _, headers := range [][]string{
			{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site"},
			{"Origin", "http://evil.example"},
			{"Origin", "http://127.0.0.1:1"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		} {
			resp, _ := c.get(t, path, headers...)
			require.Equal(t, 403, resp.StatusCode, "%s %s", path, headers)
		}
	}
	require.Empty(t, k.hub.feeds)
	require.Zero(t, store.asked("p"))
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	resp, _ := c.get(t, "/", link...)
	require.Equal(t, 200, resp.StatusCode)
	resp, _ = c.get(t, "/api/pools", link...)
	require.Equal(t, 403, resp.StatusCode)
}

// from logs in from an address with a token, and returns the status of the answer.
func from(k *Console, remote, token string) int {
	req := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/api/login", strings.NewReader(`{"token":"`+token+`","by":"bob"}`))
	req.Header.Set("Content-Type", "application/json")
	req.RemoteAddr = remote
	w := httptest.NewRecorder()
	k.ServeHTTP(w, req)
	return w.Code
}

// Wrong tokens are throttled per address. The right token always works: behind a proxy all logins come from one address.
func TestWhoGuessesSlowsDownNobodyElse(t *testing.T) {
	k, _ := serve(t, memstore.New(), token)
	now := time.Now()
	k.sessions.now = func() time.Time { return now }
	for range mostTries {
		require.Equal(t, 401, from(k, "127.0.0.1:1", token+"x"))
	}
	for range 3 {
		require.Equal(t, 429, from(k, "127.0.0.1:1", token+"x"))
		require.Equal(t, 429, from(k, "[::ffff:127.0.0.1]:1", token+"x"), "the same one")
		require.Equal(t, 401, from(k, "127.0.0.2:1", token+"x"))
		for _, address := range []string{"127.0.0.1:1", "127.0.0.2:1", "10.0.0.1:1", "[2001:db8::1]:1"} {
			require.Equal(t, 200, from(k, address, token))
		}
	}
	now = now.Add(2 * triesIn)
	require.Equal(t, 401, from(k, "127.0.0.1:1", token+"x"))
}

// However many addresses guess, few are remembered; one that goes on within its IPv6 network is one.
func TestAddressesAreBounded(t *testing.T) {
	s := newSessions(listen.NewToken(token))
	guess := func(remote string) {
		_, _, ok := s.begin(&http.Request{RemoteAddr: remote}, "wrong", "ann")
		require.False(t, ok)
	}
	for i := range mostAddresses + 10 {
		guess(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	require.LessOrEqual(t, len(s.failed), mostAddresses)
	for i := range mostTries {
		require.False(t, s.tired(&http.Request{RemoteAddr: "[2001:db8::99]:1"}))
		guess(fmt.Sprintf("[2001:db8::%x]:1", i))
	}
	require.True(t, s.tired(&http.Request{RemoteAddr: "[2001:db8::99]:1"}))
	require.False(t, s.tired(&http.Request{RemoteAddr: "[2001:db8:0:1::99]:1"}))
	for range 10 * mostTries {
		guess("10.9.9.9:1")
	}
	require.Len(t, s.failed[addressOf(&http.Request{RemoteAddr: "10.9.9.9:9"})], mostTries)
}

// With another token in the file, the sessions of the one before have ended.
func TestATokenThatWasWithdrawnEndsItsSessions(t *testing.T) {
	store := memstore.New()
	join(t, store, "p", "a", "1 0 600 60000000 0 0", driver.Whole)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	_, c := serveConfig(t, Config{Store: store, Token: token, TokenFile: file, Every: 5 * time.Millisecond, Logger: quiet})
	c.login(t)
	follow(t, c, "/api/pools", func(poll) bool { return true })
	stream := c.open(t, "/api/pool?name=p")
	defer stream.Body.Close()
	require.NoError(t, os.WriteFile(file, []byte("another "+token), 0o600))
	_, err := io.Copy(io.Discard, stream.Body)
	require.NoError(t, err, "what is under way ends, too")
	resp, _ := c.get(t, "/api/pools")
	require.Equal(t, 401, resp.StatusCode)
	code, _ := c.post(t, "/api/login", `{"token":"`+token+`","by":"ann"}`)
	require.Equal(t, 401, code)
	code, _ = c.post(t, "/api/login", `{"token":"another `+token+`","by":"ann"}`)
	require.Equal(t, 200, code)
}

// Samples are kept for a while, and events of so many pools at most; what somebody looks at is never forgotten.
func TestAFeedIsForgotten(t *testing.T) {
	now := time.Now()
	h := &hub{feeds: map[string]*feed{}}
	add := func(pool string, left time.Duration, looks bool) {
		h.feeds[pool] = &feed{pool: pool, wake: map[chan struct{}]bool{}, left: now.Add(-left), samples: make([]sample, 5), events: make([]event, 2)}
		if looks {
			h.feeds[pool].wake[make(chan struct{})] = true
		}
	}
	add("looked at", 10*linger, true)
	add("left", linger-1, false)
	add("left long ago", linger, false)
	h.forget(now, true)
	kept := func(pool string) []int { return []int{len(h.feeds[pool].samples), len(h.feeds[pool].events)} }
	require.Equal(t, []int{5, 2}, kept("looked at"))
	require.Equal(t, []int{5, 2}, kept("left"), "a page that is loaded again shows the past")
	require.Equal(t, []int{0, 2}, kept("left long ago"))
	require.Equal(t, 5, h.feeds["left long ago"].droppedSamples)
	for i := range 3 * mostFeeds {
		h.forget(now, true)
		add(fmt.Sprint(i), time.Second-time.Duration(i), false)
	}
	require.Len(t, h.feeds, mostFeeds)
	require.Contains(t, h.feeds, "looked at")
	require.NotContains(t, h.feeds, "left")
	require.Contains(t, h.feeds, fmt.Sprint(3*mostFeeds-1))
}

// However many pools somebody names, and comes and goes: only those are asked for that there are, while somebody looks.
func TestOnlyPoolsThatExistArePolledWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounted()
		join(t, store, "p", "a", "1 0 600 60000000 0 0", driver.Whole)
		h := &hub{store: store, every: time.Second, feeds: map[string]*feed{}}
		for i := range 3000 {
			f, wake, stop := h.look(t.Context(), fmt.Sprint("none-", i))
			<-wake
			var at position
			require.True(t, f.news(&at, time.Now()).Missing)
			if i%2 == 0 {
				defer stop() // who goes on looking changes nothing
			} else {
				stop()
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, h.feeds)
		require.Equal(t, 1, store.asked("none-0"))
		require.Equal(t, 1, store.asked("none-1"))

		_, _, first := h.look(t.Context(), "p")
		_, _, second := h.look(t.Context(), "p")
		first()
		time.Sleep(10 * time.Second)
		require.InDelta(t, 10, store.asked("p"), 2)
		require.NotNil(t, h.recent("p"))
		second()
		synctest.Wait()
		asked := store.asked("p")
		time.Sleep(time.Minute)
		require.Equal(t, asked, store.asked("p"), "nobody looks")
		require.Nil(t, h.recent("p"), "what is known is old")
		f, _, third := h.look(t.Context(), "p")
		defer third()
		synctest.Wait()
		var at position
		u := f.news(&at, time.Now())
		require.NotNil(t, u.Pool)
		require.GreaterOrEqual(t, len(u.Samples), 9, "the past is kept")
	})
}

// What was known of a pool before is not shown for what is known of it now.
func TestAPoolThatIsLookedAtAgainShowsNothingOld(t *testing.T) {
	f := &feed{pool: "p"}
	f.take(&protocol.Overview{Pool: "p"}, nil, nil, time.Now(), true)
	var at position
	require.NotNil(t, f.news(&at, time.Now()).Pool)
	f.stale = true
	require.Nil(t, f.news(&at, time.Now()).Pool)
	f.take(&protocol.Overview{Pool: "p"}, nil, nil, time.Now(), true)
	require.NotNil(t, f.news(&at, time.Now()).Pool)
}
