package httpproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// twoLevels are the rules of a team and a key of it.
const twoLevels = "[header X-Team, key]"

// ofTeams is a limiter with quotas of teams, whose keys have a pattern.
func ofTeams(t *testing.T, amounts map[string]int64) *throttle.Throttle {
	t.Helper()
	q := throttle.Quotas{Tags: map[string]throttle.Quota{}, Match: []throttle.QuotaPattern{{Tag: "a/*", Quota: amount(amounts["a/*"])}}}
	for name, n := range amounts {
		if name != "" && !strings.Contains(name, "*") {
			q.Tags[name] = amount(n)
		}
	}
	q.Other = amount(amounts[""])
	th, err := throttle.New(throttle.Limit{Max: 1e6, Per: time.Minute, Burst: 1e6}, throttle.WithQuotas(q))
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	return th
}

// amount is a quota of so many tokens a month.
func amount(n int64) throttle.Quota {
	if n == 0 {
		return throttle.Quota{}
	}
	return throttle.Quota{Budgets: []throttle.Budget{{Amount: n, Per: "month"}}}
}

// used is what each tag has used.
func used(th *throttle.Throttle) map[string]int64 {
	found := map[string]int64{}
	for _, st := range th.Status().Tags {
		if st.Used != 0 {
			found[st.Tag] = st.Used
		}
	}
	return found
}

// A request draws for its team and its key, and no header lets it draw for another team, or without its team.
func TestTwoLevels(t *testing.T) {
	u := serve(t, hello)
	th := ofTeams(t, map[string]int64{"a": 6, "b": 100, "a/*": 2, "": 50})
	p := start(t, Config{Upstream: u.URL, Limiter: th, Tag: twoLevels, MaxWait: time.Second})
	statuses := func(header ...string) (all []int) {
		for range 3 {
			res, _ := send(t, http.MethodPost, p.url, "", header...)
			all = append(all, res.StatusCode)
		}
		return all
	}
	require.Equal(t, []int{200, 200, 429}, statuses("X-Team", "a", "X-Api-Key", "one"), "the key's amount")
	require.Equal(t, []int{200, 200, 429}, statuses("X-Team", "a", "X-Api-Key", "two"))
	require.Equal(t, []int{200, 200, 429}, statuses("X-Team", "a"), "the rest of the team's, without a key")
	require.Equal(t, []int{429, 429, 429}, statuses("X-Team", "a", "X-Api-Key", "invented"), "another key gives the team no more")
	require.Equal(t, []int{400, 400, 400}, statuses("X-Team", "b/key", "X-Api-Key", "one"))
	require.Equal(t, []int{400, 400, 400}, statuses("X-Team", "/"))
	require.Equal(t, []int{200, 200, 200}, statuses("X-Api-Key", "one"), "no team")
	require.Equal(t, []int{200, 200, 200}, statuses("X-Team", "b", "X-Api-Key", "one"), "a key without a quota")
	got := used(th)
	for name, n := range got {
		if key, is := strings.CutPrefix(name, "a/"); is {
			require.Regexp(t, "^key-[0-9a-f]{16}$", key)
			require.LessOrEqual(t, n, int64(2))
			delete(got, name)
		}
	}
	require.Equal(t, map[string]int64{"a": 6, "b": 3, "": 3}, got)

	for team, tag := range map[string]string{"a": `"tag":"a"`, "b/key": "allowed: no slash in the first of two levels"} {
		_, body := send(t, http.MethodPost, p.url, "", "X-Team", team)
		require.Contains(t, body, tag)
	}
}

// What the service refuses to a key holds back its team, and no other; with an LLM it holds back all, for they have one account.
func TestRefusalsOfTwoLevels(t *testing.T) {
	for name, c := range map[string]struct {
		cost       string
		team, none int // the status for another key of the team, and for another team
	}{
		"a service": {"1", 429, 200},
		"an LLM":    {"llm", 429, 429},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, func(w http.ResponseWriter, _ testkit.Request, n int) {
				if n == 1 {
					w.Header().Set("Retry-After", "20")
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = io.WriteString(w, `{"error":{"code":"rate_limit_exceeded"}}`)
				}
			})
			th := ofTeams(t, map[string]int64{"a": 100_000, "b": 100_000, "a/*": 50_000})
			p := start(t, Config{Upstream: u.URL, Limiter: th, Tag: twoLevels, Cost: c.cost, MaxWait: 300 * time.Millisecond, Provider: "openai"})
			status := func(team, key string) int {
				res, _ := send(t, http.MethodPost, p.url, `{"max_tokens":5}`, "X-Team", team, "X-Api-Key", key)
				return res.StatusCode
			}
			require.Equal(t, 429, status("a", "one"))
			require.Len(t, u.Requests(), 1)
			require.Equal(t, c.team, status("a", "two"))
			require.Equal(t, c.none, status("b", "one"))
		})
	}
}

// Callers that invent keys take half of the places at most, and other teams find theirs at once.
func TestInventedKeysLeavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 1e6}, throttle.WithQuotas(throttle.Quotas{
			Tags:  map[string]throttle.Quota{"a": {Total: 100, Burst: 100, Per: time.Hour}, "b": {}},
			Match: []throttle.QuotaPattern{{Tag: "a/*"}},
		}))
		require.NoError(t, err)
		defer func() { require.NoError(t, th.Close()) }()
		c := Config{Tag: twoLevels, MaxRequests: 40, MaxWait: time.Hour, Upstream: "http://service.test", Limiter: th}
		c = c.withDefaults()
		h := newHandler(&c, limits{limiter: th}, "", nil)
		defer h.close()
		time.Sleep(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error, 1000)
		draw := func(tag string) error {
			_, err := h.limiter.Acquire(context.WithValue(ctx, callKey{}, call{tag: tag}), 1)
			return err
		}
		for i := range 1000 {
			go func() { refused <- draw(fmt.Sprint("a/", i)) }()
		}
		synctest.Wait()
		require.EqualValues(t, 100, used(th)["a"])
		require.Len(t, refused, 1000-20, "100 were granted, 20 wait, and the others were refused")
		for range 100 {
			require.NoError(t, draw("b/1"))
		}
		require.LessOrEqual(t, len(used(th)), 103)
		cancel()
		synctest.Wait()
	})
}
