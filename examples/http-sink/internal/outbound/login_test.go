package outbound

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// issuer gives out tokens that live for so long, after so long; refuses says that it gives none.
type issuer struct {
	lives, takes time.Duration
	refuses      *refusal
	mu           sync.Mutex
	asked        []time.Time
}

func (i *issuer) login(early time.Duration) *TokenLogin {
	return &TokenLogin{early: early, secret: program.Credential{Text: numathrottle.NewSecret("s")}, fetch: func(string) (*token, *refusal) {
		i.mu.Lock()
		i.asked = append(i.asked, time.Now())
		n := len(i.asked)
		i.mu.Unlock()
		time.Sleep(i.takes)
		if i.refuses != nil {
			return nil, i.refuses
		}
		return &token{kind: "Bearer", text: fmt.Sprint("token-", n), expiry: time.Now().Add(i.lives)}, nil
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
		require.Len(t, i.asked, 10)
	})
}

// A token endpoint that fails costs nothing while the token is good, and is asked ever more seldom.
func TestATokenIsUsedToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lives: 10 * time.Minute}
		l := i.login(time.Minute)
		sent(t, l)
		i.refuses = &refusal{status: 500, err: errNoToken}
		time.Sleep(9 * time.Minute)
		for range 60 {
			require.Equal(t, "Bearer token-1", sent(t, l))
			time.Sleep(time.Second)
		}
		require.ErrorContains(t, l.Set(http.Header{}), "no token: the token endpoint answered with status 500")
		i.refuses = nil
		time.Sleep(longestWait * 3 / 2)
		require.Contains(t, sent(t, l), "Bearer token-")
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
		require.Len(t, i.asked, 1)
		time.Sleep(9 * time.Minute)
		_, tokens = burst()
		require.Equal(t, map[string]int{"Bearer token-1": 9, "Bearer token-2": 1}, tokens)
		require.Len(t, i.asked, 2)
		i.refuses = &refusal{status: 500, err: errNoToken}
		time.Sleep(time.Hour)
		slowest, tokens := burst()
		require.Len(t, tokens, 1, "all are told")
		require.Equal(t, i.takes, slowest)
	})
}

// crowd lets many messages ask for a token again and again for so long, as a sink does that answers with failures.
func crowd(l *TokenLogin, lasts time.Duration) {
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				_ = l.Set(http.Header{}) // what it says is another test's
			}
		})
	}
	all.Wait()
}

// The endpoint is asked as seldom as it says, by one request for all messages.
func TestAnEndpointThatRefusesIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		refuses     *refusal
		lasts       time.Duration
		least, most int
	}{
		"it says for how long":           {&refusal{status: 429, err: errNoToken, after: time.Minute}, 20 * time.Second, 1, 1},
		"and is asked after that":        {&refusal{status: 503, err: errNoToken, after: time.Minute}, 140 * time.Second, 3, 3},
		"it says nothing":                {&refusal{status: 429, err: errNoToken}, 20 * time.Second, 3, 5},
		"it cannot be reached":           {&refusal{err: errNoToken}, 10 * time.Minute, 8, 15},
		"the secret is wrong":            {&refusal{status: 401, code: "invalid_client", err: errNoToken}, 20 * time.Second, 1, 1},
		"and once a minute":              {&refusal{status: 400, code: "invalid_scope", err: errNoToken}, 10 * time.Minute, 9, 10},
		"an hour is believed for 5 m":    {&refusal{status: 429, err: errNoToken, after: time.Hour}, 11 * time.Minute, 2, 3},
		"its answer is an error of 200":  {&refusal{status: 200, code: "invalid_client", err: errNoToken}, 20 * time.Second, 1, 1},
		"its answer is no token at all":  {&refusal{status: 200, err: errNoToken}, 20 * time.Second, 3, 5},
		"it is asked to try again later": {&refusal{status: 400, code: "temporarily_unavailable", err: errNoToken}, 20 * time.Second, 3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := &issuer{refuses: c.refuses}
				l := i.login(time.Minute)
				reported := 0
				l.reported = func(error) { reported++ }
				crowd(l, c.lasts)
				require.GreaterOrEqual(t, len(i.asked), c.least)
				require.LessOrEqual(t, len(i.asked), c.most)
				require.Equal(t, 1, reported, "said once")
				if c.refuses.after > 0 && len(i.asked) > 1 {
					require.GreaterOrEqual(t, i.asked[1].Sub(i.asked[0]), min(c.refuses.after, mostReported), "never earlier")
				}
				i.refuses = nil
				i.lives = time.Hour
				time.Sleep(mostReported * 11 / 10)
				sent(t, l)
				require.Equal(t, 2, reported, "and that it is over")
			})
		})
	}
}

// Who has the patience waits for the token; who has not is told at once, and when to come back.
func TestAwaitWaitsNoLongerThanItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{refuses: &refusal{status: 429, err: errNoToken, after: 20 * time.Second}, lives: time.Hour}
		l := i.login(time.Minute)
		began := time.Now()
		err := l.Await(t.Context(), 10*time.Second)
		missing := &TokenError{}
		require.ErrorAs(t, err, &missing)
		require.GreaterOrEqual(t, missing.RetryAfter, 20*time.Second)
		require.Zero(t, time.Since(began))
		i.refuses = nil
		require.NoError(t, l.Await(t.Context(), 30*time.Second))
		require.GreaterOrEqual(t, time.Since(began), 20*time.Second)
		require.Len(t, i.asked, 2)
		require.NoError(t, (*TokenLogin)(nil).Await(t.Context(), 0))
	})
}

// A secret that was wrong is tried again at once when its file has another.
func TestANewSecretIsTriedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o600))
	asked := 0
	l := &TokenLogin{secret: program.Credential{File: path}, fetch: func(secret string) (*token, *refusal) {
		asked++
		if secret != "new" {
			return nil, &refusal{status: 401, code: "invalid_client", err: errNoToken}
		}
		return &token{kind: "Bearer", text: "t"}, nil
	}}
	for range 10 {
		require.ErrorContains(t, l.Set(http.Header{}), "status 401 (invalid_client)")
	}
	require.Equal(t, 1, asked)
	require.NoError(t, os.WriteFile(path, []byte("new\n"), 0o600))
	require.Equal(t, "Bearer t", sent(t, l))
}
