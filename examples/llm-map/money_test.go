package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// priced are settings whose calls are estimated at 201 millionths, for a prompt of one token and an answer of a hundred at most.
func priced(change func(*settings)) settings {
	return testSettings(func(s *settings) {
		s.Prices = map[string]account.Price{"m": {Input: "1", Output: "2"}}
		if change != nil {
			change(s)
		}
	})
}

// What two pods spend stays within the budget of each hour, all of it is used but for a call's cost, and no message is lost.
func TestBudgetInMoney(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := answers(says("hi", 100, 50)) // which is 200 millionths
		var log bytes.Buffer
		var asked sync.WaitGroup
		began := time.Now()
		for i := range 2 {
			s := priced(func(s *settings) {
				s.Budget = account.Budget{Amount: "0.004", Per: "hour"}
				s.Pool = numathrottle.Config{Store: "memory://money", Pool: "pool", ID: fmt.Sprint("p", i)}
			})
			to := discard()
			if i == 0 {
				to = slog.New(slog.NewTextHandler(&log, nil))
			}
			h := handlerOf(t, drawingTo(t, s, nil, pursed(t, s, to), to), e, nil)
			for range 25 {
				asked.Go(func() { require.Equal(t, "hi", ask(t.Context(), t, h, "x").Text) })
			}
		}
		asked.Wait()
		require.Equal(t, 50, e.count())
		hours := map[time.Time]int{}
		for _, at := range e.at {
			hours[at.Truncate(time.Hour)]++
		}
		for hour, n := range hours {
			require.LessOrEqual(t, n*200, 4000+201, hour)
		}
		require.Len(t, hours, 3, "%v", hours)
		require.Less(t, time.Since(began), 2*time.Hour+time.Minute)
		require.Contains(t, log.String(), "the budget is spent")
		require.LessOrEqual(t, bytes.Count(log.Bytes(), []byte("the budget is spent")), 3, "once for each window")
	})
}

func TestSpentBudgetsAreToldOrGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, change := range map[string]func(*settings){
			"result": func(s *settings) { s.OnStop = resultOnStop },
			"nack":   func(s *settings) { s.OnDenied, s.MaxWait = nackOnDenied, 5*time.Second },
		} {
			e := answers(says("hi", 100, 50))
			s := priced(func(s *settings) {
				s.Budget = account.Budget{Amount: "0.0005"}
				s.Pool = numathrottle.Config{Store: "memory://told-" + name, Pool: "pool", ID: "p"}
				change(s)
			})
			h := handlerOf(t, drawing(t, s, nil, pursed(t, s, discard())), e, nil)
			time.Sleep(5 * time.Second)
			for range 2 {
				require.Nil(t, ask(t.Context(), t, h, "x").Error)
			}
			began := time.Now()
			if name == "result" {
				r := ask(t.Context(), t, h, "x")
				require.Equal(t, &fault{Code: "budget_spent", Message: "the budget is spent (budget)"}, r.Error)
				require.Zero(t, r.Attempts)
			} else {
				out := h.Map(t.Context(), nil, datum{value: "x"}).Items()
				require.NotNil(t, out[0].NackOptions())
				require.Contains(t, *out[0].NackOptions().Reason, "budget")
			}
			require.Equal(t, 2, e.count())
			require.Less(t, time.Since(began), 10*time.Second)
		}
	})
}

// What a call is drawn and settled at.
func TestCallsCostWhatTheyUsed(t *testing.T) {
	cutEvents, _, _ := strings.Cut(messagesEvents, "message_delta")
	for name, c := range map[string]struct {
		answer answer
		used   []int
	}{
		"an answer": {says("hi", 100, 50), []int{200}},
		"without a usage": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"hi"}}]}`)
		}, []int{201}},
		"a refusal":                  {refuses(400, "", ""), []int{0}},
		"a refusal at 200":           {limitedOnce(), []int{201, 200}},
		"a fault at 200":             {refuses(200, "", `{"error":{"code":"context_length_exceeded"}}`), []int{201}},
		"a fault at 200 with usage":  {refuses(200, "", `{"error":{"code":400},"usage":{"prompt_tokens":10,"completion_tokens":5}}`), []int{201}},
		"a failure at 200":           {refuses(200, "", `{"error":{"code":500}}`), []int{201, 201}},
		"a failure without a status": {refuses(200, "", `{"error":{"message":"x"}}`), []int{201, 201}},
		"the model's own": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"choices":[{"message":{"refusal":"no"}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`)
		}, []int{20}},
		"thoughts only in the total": {refuses(200, "", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":8,"completion_tokens":40,"total_tokens":129}}`), []int{8 + 2*100}},
		"a cache beside the prompt": {refuses(200, "", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":13,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":12304}}}`), []int{12317 + 2*50}},
		"an impossible usage": {refuses(200, "", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":8,"completion_tokens":1e12}}`), []int{8 + 2*100}},
		"a stream, thoughts only in the total": {refuses(200, "", `data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\n"+
			`data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":40,"total_tokens":129}}`+"\n\ndata: [DONE]\n\n"), []int{8 + 2*100}},
		"a stream that breaks off": {refuses(200, "", cutEvents), []int{201, 201}},
		"one that used more before": {
			refuses(200, "", strings.ReplaceAll(cutEvents, `tokens":4`, `tokens":900`)), []int{918, 918},
		},
		"a stream of messages": {refuses(200, "", messagesEvents), []int{20 + 2*3}},
		"a failure":            {refuses(500, "", ""), []int{201, 201}},
		"one above it":         {says("hi", 1000, 50), []int{1100}},
	} {
		for _, many := range []bool{false, true} {
			t.Run(fmt.Sprint(name, many), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					change := func(s *settings) {
						s.Prices, s.MaxAttempts = map[string]account.Price{"m": {Input: "1", Output: "2"}}, 2
					}
					budget := throttletest.New()
					p := account.NewPurse(priced(nil).Prices, budget, false, discard())
					h := handlerOf(t, drawing(t, priced(change), nil, p), answers(c.answer), nil)
					if many {
						h = newChoiceOf(t, p, answers(c.answer), answers(c.answer), throttletest.New(), throttletest.New(), change).handler
					}
					ask(t.Context(), t, h, "x")
					draws := kept(t, budget)
					require.Len(t, draws, len(c.used))
					for i, d := range draws {
						require.Equal(t, 201, d.Cost)
						require.True(t, d.Settled)
						require.Equal(t, c.used[i], d.Used)
					}
				})
			})
		}
	}
}

// kept returns the draws of calls from a budget. Before each, one that is given back waits until the budget has something.
func kept(t *testing.T, budget *throttletest.Limiter) (draws []throttletest.Draw) {
	t.Helper()
	for i, d := range budget.Draws() {
		if i%2 == 1 {
			draws = append(draws, d)
			continue
		}
		require.True(t, d.Settled)
		require.Zero(t, d.Used)
	}
	return draws
}

// limitedOnce says in the body that a limit is used up, once for each message.
func limitedOnce() answer {
	calls := 0
	return func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls%2 == 1 {
			refuses(200, "", `{"error":{"code":429,"message":"slow down"}}`)(w, r)
			return
		}
		says("hi", 100, 50)(w, r)
	}
}

// A call that was sent, and has no answer or a part of one, may have cost something, whatever becomes of calls that are not sent.
func TestCallsWithoutAnAnswerCostWhatTheyDrew(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"
	for _, c := range []struct {
		raw, code string
		used      int
	}{
		{"", "failed", 201},
		{head + messagesEvents, "broken_answer", 20 + 2*3},
		{head + strings.ReplaceAll(messagesEvents, `tokens":4`, `tokens":900`), "broken_answer", 916 + 2*3},
	} {
		at := brokenServer(t, c.raw)
		for _, action := range []deniedAction{waitOnDenied, nackOnDenied} {
			s := priced(func(s *settings) { s.BaseURL, s.MaxAttempts, s.OnDenied, s.MaxWait = at, 1, action, time.Minute })
			budget := throttletest.New()
			of := drawing(t, s, throttletest.New(), account.NewPurse(s.Prices, budget, false, discard()))
			h, err := newHandler(s, []target{of}, nil, discard())
			require.NoError(t, err)
			require.Equal(t, c.code, ask(t.Context(), t, h, "x").Error.Code, action)
			draws := kept(t, budget)
			require.Len(t, draws, 1)
			require.Equal(t, c.used, draws[0].Used, action)
		}
	}
}

// While a call waits for its own limits and is given up, its money goes back.
func TestMoneyOfCallsThatAreNotSentGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		change := func(s *settings) { s.OnDenied, s.MaxWait = nackOnDenied, 3*time.Second }
		budget := throttletest.New()
		p := account.NewPurse(priced(nil).Prices, budget, false, discard())
		for _, h := range []*handler{
			handlerOf(t, drawing(t, priced(change), throttletest.New(throttletest.Block()), p), answers(says("hi", 1, 1)), nil),
			newChoiceOf(t, p, answers(says("hi", 1, 1)), answers(says("hi", 1, 1)), throttletest.New(throttletest.Block()),
				throttletest.New(throttletest.Block()), change).handler,
		} {
			require.NotNil(t, h.Map(t.Context(), nil, datum{value: "x"}).Items()[0].NackOptions())
			for _, d := range budget.Draws() {
				require.True(t, d.Settled || d.Err != nil)
				require.Zero(t, d.Used)
			}
		}
	})
}

func TestCostIsCountedByModel(t *testing.T) {
	at := testenv.ClosedPort(t)
	s := priced(func(s *settings) { s.Pool.HealthAddr, s.Pool.ID, s.MaxTokens = at, "p", 50_000 })
	h := handlerOf(t, drawing(t, s, nil, pursed(t, s, discard())), answers(says("hi", 100_000, 50_000)), nil)
	for range 2 {
		require.Nil(t, ask(t.Context(), t, h, "x").Error)
	}
	res, err := http.Get("http://" + at + "/metrics")
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `llm_map_cost_total{model="m"} 0.4`+"\n")
}

func TestMoneySettings(t *testing.T) {
	s, err := load(t, map[string]string{
		"MODEL": "gpt-4o", "API_KEY": canary, "PRICES": `{gpt-4o: {input: 2.5, output: 10}, "a/b:c": {output: 0.000001}}`,
		"BUDGET": `{amount: 25.5, per: month, zone: Europe/Berlin}`,
	})
	require.NoError(t, err)
	require.EqualValues(t, 25_500_000, s.Budget.Quotas().Other.Budgets[0].Amount)
	var out bytes.Buffer
	require.NoError(t, llmMap.Run(t.Context(), []string{"--check"}, &out, &out))
	require.Contains(t, out.String(), `budget: "{\"amount\":25.5,\"per\":\"month\",\"zone\":\"Europe/Berlin\"}"`)

	for want, vars := range map[string]map[string]string{
		`budget is set without prices`:                                     {"BUDGET": "{amount: 1}"},
		`prices has none of the model "m", whose calls would cost nothing`: {"BUDGET": "{amount: 1}", "PRICES": "{x: {input: 1, output: 1}}"},
		`budget.amount is not set, allowed: above 0`:                       {"BUDGET": "{per: day}", "PRICES": "{m: {input: 1, output: 1}}"},
		`budget.amount is "1e6"`:                                           {"BUDGET": "{amount: 1e6}", "PRICES": "{m: {input: 1, output: 1}}"},
		`budget.per is "week"`:                                             {"BUDGET": "{amount: 1, per: week}", "PRICES": "{m: {input: 1, output: 1}}"},
		`zone is "Mars/Olympus"`: {
			"BUDGET": "{amount: 1, zone: Mars/Olympus}",
			"PRICES": "{m: {input: 1, output: 1}}",
		},
		`prices."m".inputt is not a setting; did you mean input?`:              {"PRICES": "{m: {inputt: 1}}"},
		`prices."m".input is "-1" (LLM_MAP_PRICES:1), allowed: a number, 0 to`: {"PRICES": "{m: {input: -1}}"},
	} {
		vars["MODEL"], vars["API_KEY"] = "m", canary
		_, err := load(t, vars)
		require.Contains(t, err.Error()+withoutSources(err).Error(), want)
	}
	_, err = load(t, map[string]string{
		"MODEL": "m", "API_KEY": canary, "BUDGET": "{amount: 1}", "PRICES": "{m: {input: 1, output: 1}}", "DEPLOYMENTS": "{a: {}, b: {model: n}}",
	})
	require.ErrorContains(t, err, `prices has none of the model "n"`)
}

// A call that is dearer than the whole budget could never be made: that is told at once.
func TestCallsThatAreDearerThanTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, many := range []bool{false, true} {
			e := answers(says("hi", 100, 50))
			s := priced(func(s *settings) {
				s.Budget = account.Budget{Amount: "0.0001"}
				s.Pool = numathrottle.Config{Store: fmt.Sprint("memory://dear-", many), Pool: "pool", ID: "p"}
			})
			p := pursed(t, s, discard())
			h := handlerOf(t, drawing(t, s, nil, p), e, nil)
			if many {
				h = newChoiceOf(t, p, e, e, throttletest.New(), throttletest.New(), nil).handler
			}
			time.Sleep(5 * time.Second)
			began := time.Now()
			require.Equal(t, codeTooLarge, ask(t.Context(), t, h, "x").Error.Code)
			require.Less(t, time.Since(began), time.Minute)
			require.Zero(t, e.count())
		}
	})
}
