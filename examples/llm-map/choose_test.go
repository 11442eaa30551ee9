package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/program"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// byHost sends each request to the handler of its host.
type byHost map[string]http.Handler

func (b byHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b[r.URL.Hostname()].ServeHTTP(w, r)
}

// A choice is a handler with two deployments, at hosts a and b.
type choice struct {
	*handler

	a, b   *endpoint
	la, lb *throttletest.Limiter
	log    *bytes.Buffer
}

// newChoice returns two deployments whose limiters follow scripts.
func newChoice(t *testing.T, a, b *endpoint, la, lb *throttletest.Limiter, change func(*settings)) *choice {
	t.Helper()
	return newChoiceOf(t, nil, a, b, la, lb, change)
}

// newChoiceOf is newChoice with a purse.
func newChoiceOf(t *testing.T, p *account.Purse, a, b *endpoint, la, lb *throttletest.Limiter, change func(*settings)) *choice {
	t.Helper()
	c := &choice{a: a, b: b, la: la, lb: lb, log: &bytes.Buffer{}}
	var targets []target
	for name, l := range map[string]*throttletest.Limiter{"a": la, "b": lb} {
		s := testSettings(change)
		s.Deployment, s.BaseURL, s.SpillAfter = name, "http://"+name, time.Second
		targets = append(targets, drawing(t, s, l, p))
	}
	if targets[0].settings.Deployment == "b" {
		targets[0], targets[1] = targets[1], targets[0]
	}
	var err error
	c.handler, err = newHandler(targets[0].settings, targets, inMemory{byHost{"a": a, "b": b}}, slog.New(slog.NewTextHandler(c.log, nil)))
	require.NoError(t, err)
	return c
}

// permits is how many permits of a limiter were used, and not given back.
func permits(l *throttletest.Limiter) int {
	n := 0
	for _, d := range l.Draws() {
		if d.Settled && d.Used > 0 {
			n++
		}
	}
	return n
}

// requirePermits fails unless each call had a permit of its own deployment, and every other permit has been given back.
func (c *choice) requirePermits(t *testing.T) {
	t.Helper()
	for l, e := range map[*throttletest.Limiter]*endpoint{c.la: c.a, c.lb: c.b} {
		require.Equal(t, e.count(), permits(l))
		for _, d := range l.Draws() {
			require.True(t, d.Settled || d.Err != nil, "%+v", d)
		}
	}
	require.NotContains(t, c.log.String(), canary)
}

func TestFirstDeploymentIsPreferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChoice(t, answers(says("a", 1, 1)), answers(says("b", 1, 1)), throttletest.New(), throttletest.New(), nil)
		for range 3 {
			r := ask(t.Context(), t, c.handler, "x")
			require.Equal(t, "a 1", fmt.Sprint(r.Deployment, " ", r.Attempts))
		}
		require.Zero(t, c.b.count())
		c.requirePermits(t)
	})
}

// A deployment whose limits have nothing for spillAfter is passed by, and nothing of it is kept.
func TestNextDeploymentServesWhenTheLimitsOfTheFirstAreUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := throttletest.New(throttletest.Block(), throttletest.Grant())
		c := newChoice(t, answers(says("a", 1, 1)), answers(says("b", 1, 1)), blocked, throttletest.New(), nil)
		began := time.Now()
		require.Equal(t, "b", ask(t.Context(), t, c.handler, "x").Deployment)
		require.Equal(t, time.Second, time.Since(began))
		require.Zero(t, c.a.count())
		require.Equal(t, "a", ask(t.Context(), t, c.handler, "x").Deployment)
		c.requirePermits(t)
	})
}

// A refusal pauses its own deployment for as long as it says; the others go on, and every message has one answer.
func TestRefusalsPauseTheirDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChoice(t, answers(refuses(429, "Retry-After: 60", "slow down"), says("a", 1, 1)), answers(says("b", 1, 1)),
			throttletest.New(), throttletest.New(), nil)
		began := time.Now()
		r := ask(t.Context(), t, c.handler, "x")
		require.Equal(t, "b 2", fmt.Sprint(r.Deployment, " ", r.Attempts))
		require.Zero(t, time.Since(began), "nobody waits where another can serve")
		for range 3 {
			require.Equal(t, "b", ask(t.Context(), t, c.handler, "x").Deployment)
		}
		require.Equal(t, 1, c.a.count())
		time.Sleep(66 * time.Second)
		require.Equal(t, "a", ask(t.Context(), t, c.handler, "x").Deployment)
		c.requirePermits(t)
		require.Contains(t, c.log.String(), "deployment=a class=wait")
	})
}

// Whatever is wrong with a deployment, the next one answers at once.
func TestNextDeploymentServesWhenTheFirstFails(t *testing.T) {
	for name, c := range map[string]struct {
		bad    answer
		change func(*settings)
	}{
		"overloaded":  {refuses(503, "", ""), nil},
		"broken":      {refuses(500, "", ""), nil},
		"wrong key":   {refuses(401, "", ""), nil},
		"stop, told":  {refuses(401, "", ""), func(s *settings) { s.OnStop = resultOnStop }},
		"no capacity": {refuses(498, "", ""), nil},
		"424":         {refuses(424, "", ""), nil},
		"499":         {refuses(499, "", ""), nil},
		"420":         {refuses(420, "", ""), nil},
		"throttled":   {refuses(400, "", `{"__type":"ThrottlingException"}`), nil},
		"a rate, 403": {refuses(403, "", `{"error":{"code":"rate_limit_exceeded"}}`), nil},
		"spent quota": {refuses(429, "", `{"error":{"message":"x","code":"insufficient_quota"}}`), nil},
		"in the body": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"error":{"code":429,"message":"slow down"}}`))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				two := newChoice(t, answers(c.bad), answers(says("b", 1, 1)), throttletest.New(), throttletest.New(), c.change)
				began := time.Now()
				r := ask(t.Context(), t, two.handler, "x")
				require.Equal(t, "b 2", fmt.Sprint(r.Deployment, " ", r.Attempts))
				require.Zero(t, time.Since(began))
				two.requirePermits(t)
			})
		})
	}
}

// A message's own fault is answered by the first deployment that sees it.
func TestFaultsOfTheMessageAreNotSentElsewhere(t *testing.T) {
	c := newChoice(t, answers(refuses(400, "", "")), answers(says("b", 1, 1)), throttletest.New(), throttletest.New(), nil)
	r := ask(t.Context(), t, c.handler, "x")
	require.Equal(t, "400 a", r.Error.Code+" "+r.Deployment)
	require.Zero(t, c.b.count())
}

// When no deployment can serve, the message waits for the first that can, as often as it takes, and failures are bounded.
func TestMessagesWaitForWhicheverDeploymentComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChoice(t, answers(refuses(429, "Retry-After: 60", ""), says("a", 1, 1)), answers(refuses(429, "Retry-After: 20", ""), says("b", 1, 1)),
			throttletest.New(), throttletest.New(), nil)
		began := time.Now()
		r := ask(t.Context(), t, c.handler, "x")
		require.Equal(t, "b 3", fmt.Sprint(r.Deployment, " ", r.Attempts))
		require.GreaterOrEqual(t, time.Since(began), 20*time.Second)
		require.Less(t, time.Since(began), 23*time.Second)
		c.requirePermits(t)

		broken := newChoice(t, answers(refuses(500, "", "")), answers(refuses(500, "", "")), throttletest.New(), throttletest.New(),
			func(s *settings) { s.MaxAttempts = 5 })
		require.Equal(t, "500", ask(t.Context(), t, broken.handler, "x").Error.Code)
		require.Equal(t, 5, broken.a.count()+broken.b.count())
		require.InDelta(t, broken.a.count(), broken.b.count(), 1)
		broken.requirePermits(t)
	})
}

// With permits of both at the same moment one is used and the other given back.
func TestTheOtherPermitGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := make(chan struct{})
		time.AfterFunc(3*time.Second, func() { close(both) })
		wait := throttletest.GrantOn(both)
		c := newChoice(t, answers(says("a", 1, 1)), answers(says("b", 1, 1)), throttletest.New(throttletest.Block(), wait),
			throttletest.New(throttletest.Block(), wait), nil)
		require.Nil(t, ask(t.Context(), t, c.handler, "x").Error)
		require.Equal(t, 1, c.a.count()+c.b.count())
		c.requirePermits(t)
	})
}

func TestAllDeploymentsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChoice(t, answers(refuses(401, "", `{"error":{"code":"no_a"}}`)), answers(refuses(401, "", `{"error":{"code":"no_b"}}`)),
			throttletest.New(), throttletest.New(), func(s *settings) { s.OnStop = resultOnStop })
		for range 2 {
			r := ask(t.Context(), t, c.handler, "x")
			require.Equal(t, "no_a a", r.Error.Code+" "+r.Deployment)
			require.Equal(t, 2, r.Attempts)
		}
		c.requirePermits(t)

		held := newChoice(t, answers(refuses(401, "", "")), answers(refuses(401, "", ""), refuses(401, "", ""), says("b", 1, 1)),
			throttletest.New(), throttletest.New(), nil)
		began := time.Now()
		require.Equal(t, "b", ask(t.Context(), t, held.handler, "x").Deployment)
		require.LessOrEqual(t, time.Since(began), 3*time.Minute)
		require.LessOrEqual(t, held.a.count(), 3, "one call a minute tries")
		held.requirePermits(t)
	})
}

// A prompt that is too large for one deployment goes to another; for all, it is an error, and draws nothing.
func TestPromptsThatAreTooLargeForADeployment(t *testing.T) {
	c := newChoice(t, answers(says("a", 1, 1)), answers(says("b", 1, 1)), throttletest.New(), throttletest.New(), nil)
	c.deployments[0].settings.MaxPromptTokens = 10
	require.Equal(t, "b", ask(t.Context(), t, c.handler, strings.Repeat("x", 100)).Deployment)
	require.Equal(t, "a", ask(t.Context(), t, c.handler, "x").Deployment)
	c.deployments[1].settings.MaxPromptTokens = 20
	r := ask(t.Context(), t, c.handler, strings.Repeat("x", 100))
	require.Regexp(t, `^the prompt has about \d+ tokens, allowed: at most 10 \(maxPromptTokens\)$`, r.Error.Message)
	require.Equal(t, codeTooLarge, r.Error.Code)
	require.Equal(t, 2, c.a.count()+c.b.count())
	c.requirePermits(t)
}

// A call above the whole limit of a deployment goes to the next, and holds nobody back; for all, it is an error.
func TestCallsAboveTheLimitOfADeployment(t *testing.T) {
	for _, status := range []int{413, 429, 200} {
		synctest.Test(t, func(t *testing.T) {
			c := newChoice(t, answers(refuses(status, "", aboveLimit), says("a", 1, 1)), answers(says("b", 1, 1), refuses(status, "", aboveLimit)),
				throttletest.New(), throttletest.New(), nil)
			began := time.Now()
			require.Equal(t, "b 2", deploymentOf(ask(t.Context(), t, c.handler, "x")), status)
			require.Equal(t, "a 1", deploymentOf(ask(t.Context(), t, c.handler, "x")), status)
			c.a.answers = c.a.answers[:1]
			r := ask(t.Context(), t, c.handler, "x")
			require.Equal(t, "rate_limit_exceeded", r.Error.Code)
			require.Equal(t, "a 2", deploymentOf(r))
			require.Zero(t, time.Since(began))
			c.requirePermits(t)

			one := mustHandler(t, testSettings(nil), nil, answers(refuses(status, "", aboveLimit)), nil)
			r = ask(t.Context(), t, one, "x")
			require.Equal(t, "rate_limit_exceeded 1", fmt.Sprint(r.Error.Code, " ", r.Attempts))
			require.Zero(t, time.Since(began))
		})
	}
}

func deploymentOf(r result) string { return fmt.Sprint(r.Deployment, " ", r.Attempts) }

// A deployment without a key sends nothing, and keeps no permit.
func TestADeploymentWithoutAKey(t *testing.T) {
	c := newChoice(t, answers(says("a", 1, 1)), answers(says("b", 1, 1)), throttletest.New(), throttletest.New(), nil)
	c.deployments[0].settings.APIKey = program.Credential{File: "/nowhere/key"}
	require.Equal(t, "b", ask(t.Context(), t, c.handler, "x").Deployment)
	require.Zero(t, c.a.count())
	require.Len(t, c.la.Draws(), 1)
	c.requirePermits(t)
}

// Where all deployments would take longer than maxWait, the message is given back until the first of them can.
func TestNackWhenNoDeploymentCanServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChoice(t, answers(refuses(429, "Retry-After: 60", "")), answers(refuses(429, "Retry-After: 20", "")), throttletest.New(), throttletest.New(),
			func(s *settings) { s.OnDenied, s.MaxWait = nackOnDenied, 5*time.Second })
		began := time.Now()
		out := c.Map(t.Context(), []string{"k"}, datum{value: "x"}).Items()
		require.Len(t, out, 1)
		require.NotNil(t, out[0].NackOptions())
		require.GreaterOrEqual(t, *out[0].NackOptions().Delay, uint64(19_000))
		require.Less(t, *out[0].NackOptions().Delay, uint64(40_000))
		require.LessOrEqual(t, time.Since(began), 7*time.Second)
		c.requirePermits(t)
	})
}

// Frozen pools are waited for.
func TestFrozenPoolsOfManyDeploymentsAreWaitedFor(t *testing.T) {
	frozen := throttletest.Deny(&throttle.Error{Reason: throttle.ReasonFrozen, RetryAfter: 15 * time.Second})
	synctest.Test(t, func(t *testing.T) {
		script := []throttletest.Step{frozen, frozen, throttletest.Grant()}
		c := newChoice(t, answers(says("a", 1, 1)), answers(says("b", 1, 1)), throttletest.New(script...), throttletest.New(script...),
			func(s *settings) { s.OnDenied, s.MaxWait = nackOnDenied, 5*time.Second })
		began := time.Now()
		require.Equal(t, "a", ask(t.Context(), t, c.handler, "x").Deployment)
		require.Equal(t, 15*time.Second, time.Since(began))
		c.requirePermits(t)
	})
}

// A wait for the first deployment leaves time for the others.
func TestMaxWaitIsEnoughForAllDeployments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChoice(t, answers(says("a", 1, 1)), answers(says("b", 1, 1)), throttletest.New(throttletest.Block()), throttletest.New(),
			func(s *settings) { s.OnDenied, s.MaxWait = nackOnDenied, 300*time.Millisecond })
		require.Equal(t, "b", ask(t.Context(), t, c.handler, "x").Deployment)
		c.requirePermits(t)
	})
}

func TestEndedMessagesOfManyDeploymentsHaveNoAnswer(t *testing.T) {
	for name, script := range map[string][]throttletest.Step{
		"for tokens": {throttletest.Block(), throttletest.Block()}, "refused": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newChoice(t, answers(refuses(429, "Retry-After: 600", "")), answers(refuses(429, "Retry-After: 600", "")),
					throttletest.New(script...), throttletest.New(script...), nil)
				requireNoAnswer(t, c.handler, 10*time.Second)
				c.requirePermits(t)
			})
		})
	}
}

// Two deployments that enforce their own limits: none refuses a call, the first is used up, and each message is answered once.
func TestPoolOfTwoDeployments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := map[string]*fakellm.Server{}
		limits := map[string]fakellm.Config{
			"a": {Provider: fakellm.SelfHosted, TokensPerMinute: 200_000, Slice: 5 * time.Second, Latency: 300 * time.Millisecond},
			"b": {Provider: fakellm.SelfHosted, RequestsPerMinute: 300, TokensPerMinute: 400_000, Slice: 5 * time.Second, Latency: 300 * time.Millisecond},
		}
		hosts := byHost{}
		for name, c := range limits {
			server, err := fakellm.New(c)
			require.NoError(t, err)
			servers[name], hosts[name] = server, server
		}
		store := "memory://two-deployments"
		const prompts = 900
		got := answerPrompts(t, 2, prompts, func(i int) *handler {
			var targets []target
			for _, name := range []string{"a", "b"} {
				s := testSettings(func(s *settings) {
					s.Deployment, s.BaseURL, s.SpillAfter, s.MaxTokens = name, "http://"+name, time.Second, 200
					s.RequestsPerMinute, s.TokensPerMinute = limits[name].RequestsPerMinute, limits[name].TokensPerMinute
					s.Pool = numathrottle.Config{Store: store, Pool: "pool/" + name, ID: fmt.Sprint("p", i)}
				})
				targets = append(targets, opened(t, s))
			}
			h, err := newHandler(targets[0].settings, targets, inMemory{hosts}, discard())
			require.NoError(t, err)
			return h
		})
		t.Log(got)
		require.Equal(t, prompts, got["a"]+got["b"])
		for name, server := range servers {
			require.Zero(t, server.Stats().Refused(), "%s: %+v", name, server.Stats())
			require.Equal(t, got[name], server.Stats().Served)
		}
		_, tokens := use(servers["a"].Charges(), limits["a"])
		requests, _ := use(servers["b"].Charges(), limits["b"])
		t.Logf("used %.3f of the tokens of a, %.3f of the requests of b", tokens, requests)
		require.GreaterOrEqual(t, tokens, 0.9)
		require.GreaterOrEqual(t, requests, 0.9)
	})
}

var _ throttle.Limiter = handed{}
