package outbound

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
)

// issuer gives out tokens that live for so long, after so long; fails says that it gives none.
type issuer struct {
	lives, takes time.Duration
	fails        bool
	asked        int
}

func (i *issuer) login(early time.Duration) *tokenLogin {
	return &tokenLogin{early: early, fetch: func() (*oauth2.Token, error) {
		i.asked++
		n := i.asked
		time.Sleep(i.takes)
		if i.fails {
			return nil, errors.New("down")
		}
		return &oauth2.Token{AccessToken: fmt.Sprint("token-", n), Expiry: time.Now().Add(i.lives)}, nil
	}}
}

func sent(t *testing.T, l Login) string {
	t.Helper()
	h := http.Header{}
	require.NoError(t, l.Set(h))
	return h.Get("Authorization")
}

func TestATokenIsReplacedBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lives: 10 * time.Minute}
		l := i.login(time.Minute)
		require.Equal(t, "Bearer token-1", sent(t, l))
		time.Sleep(9*time.Minute - time.Second)
		require.Equal(t, "Bearer token-1", sent(t, l))
		time.Sleep(time.Second)
		require.Equal(t, "Bearer token-2", sent(t, l))
	})
}

// A token that lives for less than that is used for half its life.
func TestAShortTokenIsNotFetchedForEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lives: 20 * time.Second}
		l := i.login(30 * time.Second)
		for range 100 {
			sent(t, l)
			time.Sleep(time.Second)
		}
		require.Equal(t, 10, i.asked)
	})
}

// A token endpoint that fails costs nothing while the token is good, and is not asked with each request.
func TestATokenIsUsedToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lives: 10 * time.Minute}
		l := i.login(time.Minute)
		sent(t, l)
		i.fails = true
		time.Sleep(9 * time.Minute)
		for range 60 {
			require.Equal(t, "Bearer token-1", sent(t, l))
			time.Sleep(time.Second)
		}
		require.Equal(t, 1+6, i.asked)
		require.ErrorContains(t, l.Set(http.Header{}), "no token")
		i.fails = false
		require.Equal(t, "Bearer token-9", sent(t, l))
	})
}

// While one request fetches a token, the others use the one before; without one they wait for it.
func TestOneFetchesForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lives: 10 * time.Minute, takes: 5 * time.Second}
		l := i.login(time.Minute)
		burst := func() (slowest time.Duration, tokens map[string]int) {
			var mu sync.Mutex
			var all sync.WaitGroup
			tokens = map[string]int{}
			began := time.Now()
			for range 10 {
				all.Go(func() {
					h := http.Header{}
					if err := l.Set(h); err != nil {
						h.Set("Authorization", err.Error())
					}
					mu.Lock()
					defer mu.Unlock()
					tokens[h.Get("Authorization")]++
					slowest = max(slowest, time.Since(began))
				})
			}
			all.Wait()
			return slowest, tokens
		}
		_, tokens := burst()
		require.Equal(t, map[string]int{"Bearer token-1": 10}, tokens)
		require.Equal(t, 1, i.asked)
		time.Sleep(9 * time.Minute)
		_, tokens = burst()
		require.Equal(t, map[string]int{"Bearer token-1": 9, "Bearer token-2": 1}, tokens)
		require.Equal(t, 2, i.asked)
		i.fails = true
		time.Sleep(time.Hour)
		slowest, tokens := burst()
		require.Len(t, tokens, 1, "all are told")
		require.Equal(t, i.takes, slowest)
	})
}
