package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A child is a process of llm-map, which this binary is in a test.
type child struct {
	*testenv.Process

	feed *dataplane.Map
}

// startChild starts llm-map with variables, on a socket in dir, and opens a stream to it. The
// cleanup of the test kills it.
func startChild(t *testing.T, dir, id string, environ ...string) *child {
	t.Helper()
	p, socket := startProcess(t, dir, id, environ...)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	feed, err := dataplane.Dial(ctx, socket)
	require.NoError(t, err)
	return &child{Process: p, feed: feed}
}

// startProcess starts llm-map with variables, and returns the socket on which it will listen.
func startProcess(t *testing.T, dir, id string, environ ...string) (p *testenv.Process, socket string) {
	t.Helper()
	testkit.SkipShort(t, "it starts processes")
	socket = filepath.Join(dir, id+".sock")
	cmd := testenv.Self(t)
	cmd.Env = append([]string{
		processVariable + "=1", "NUMATHROTTLE_ID=" + id, "LLM_MAP_PROVIDER=self-hosted", "LLM_MAP_MODEL=m", "LLM_MAP_API_KEY=" + canary,
		"LLM_MAP_MAX_TOKENS=50", "LLM_MAP_SOCKET=" + socket, "LLM_MAP_SERVER_INFO=" + socket + ".info",
	}, environ...)
	p = testenv.StartProcess(t, cmd)
	t.Cleanup(func() {
		p.Kill()
		require.NotContains(t, p.Output(), canary)
	})
	return p, socket
}

// requireAnswered sends prompts at once, to one child after the other, and requires an answer to each.
func requireAnswered(t *testing.T, prompts int, children []*child) {
	t.Helper()
	var sending sync.WaitGroup
	var answered atomic.Int64
	for n := range prompts {
		sending.Go(func() {
			out, err := children[n%len(children)].feed.Do(t.Context(), dataplane.Message{Keys: []string{"k"}, Value: []byte("some words to repeat")})
			if err == nil && isAnswer(out) {
				answered.Add(1)
			}
		})
	}
	sending.Wait()
	require.EqualValues(t, prompts, answered.Load())
}

// requireEnds ends children in good order.
func requireEnds(t *testing.T, children ...*child) {
	t.Helper()
	for _, c := range children {
		require.NoError(t, c.feed.Close())
		require.NoError(t, c.Cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, c.Wait())
	}
}

func startFake(t *testing.T, c fakellm.Config) (*fakellm.Server, string) {
	t.Helper()
	fake, err := fakellm.New(c)
	require.NoError(t, err)
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	return fake, server.URL + "/v1"
}

// The short form of the demo: four processes answer prompts over their real sockets; the
// provider refuses none. The store is a fixed division, which needs no server.
func TestFourProcesses(t *testing.T) {
	const prompts = 300
	fake, url := startFake(t, fakellm.Config{
		Provider: fakellm.SelfHosted, RequestsPerMinute: 12_000, TokensPerMinute: 3_000_000, Slice: 10 * time.Second, Latency: 20 * time.Millisecond,
		APIKey: canary,
	})
	dir := dataplane.Dir(t)
	var children []*child
	for i := range 4 {
		children = append(children, startChild(t, dir, fmt.Sprint("p", i), "LLM_MAP_BASE_URL="+url, "NUMATHROTTLE_STORE=static://?replicas=4",
			"LLM_MAP_REQUESTS_PER_MINUTE=12000", "LLM_MAP_TOKENS_PER_MINUTE=3000000", "LLM_MAP_IN_FLIGHT=64"))
	}
	requireAnswered(t, prompts, children)
	st := fake.Stats()
	require.Zero(t, st.Refused(), "%+v", st)
	require.Equal(t, prompts, st.Served)
	require.LessOrEqual(t, st.MostInFlight, 64)
	requireEnds(t, children...)
}

func isAnswer(out []dataplane.Result) bool {
	var r result
	return len(out) == 1 && json.Unmarshal(out[0].Value, &r) == nil && r.Error == nil && r.Text != "" && r.Usage != nil
}

// SIGTERM while calls are under way, and while messages wait for tokens, loses nothing: each
// message has its real answer, or none at all, so that the platform delivers it again.
func TestSIGTERMInMidCallLosesNothing(t *testing.T) {
	fake, url := startFake(t, fakellm.Config{Provider: fakellm.SelfHosted, Latency: 500 * time.Millisecond})
	dir := dataplane.Dir(t)
	c := startChild(t, dir, "p", "LLM_MAP_BASE_URL="+url, "LLM_MAP_IN_FLIGHT=10")
	const messages = 30 // in flight are ten of them at a time
	var answered, unanswered, wrong atomic.Int64
	var sending sync.WaitGroup
	for range messages {
		sending.Go(func() {
			out, err := c.feed.Do(context.Background(), dataplane.Message{Value: []byte("some words to repeat")})
			switch {
			case err != nil:
				unanswered.Add(1)
			case isAnswer(out):
				answered.Add(1)
			default:
				wrong.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return fake.Stats().InFlight == 10 }, 20*time.Second, time.Millisecond)
	require.NoError(t, c.Cmd.Process.Signal(syscall.SIGTERM))
	sending.Wait()
	_ = c.feed.Close() // it fails when messages were left without an answer
	require.NoError(t, c.Wait())
	require.Zero(t, wrong.Load())
	require.EqualValues(t, messages, answered.Load()+unanswered.Load())
	require.GreaterOrEqual(t, answered.Load(), int64(10), "calls that were under way are answered")
	t.Logf("%d answered, %d to be delivered again", answered.Load(), unanswered.Load())

	// The next process answers what was not.
	next := startChild(t, dir, "q", "LLM_MAP_BASE_URL="+url)
	for range unanswered.Load() {
		sending.Go(func() {
			out, err := next.feed.Do(context.Background(), dataplane.Message{Value: []byte("some words to repeat")})
			if err == nil && isAnswer(out) {
				answered.Add(1)
			}
		})
	}
	sending.Wait()
	require.NoError(t, next.feed.Close())
	require.EqualValues(t, messages, answered.Load())
}

// Two processes share two deployments and a budget: neither provider refuses a call, and every message is answered. What the providers
// count is what they spent.
func TestProcessesShareDeploymentsAndABudget(t *testing.T) {
	const prompts = 60
	first, urlA := startFake(t, fakellm.Config{Provider: fakellm.SelfHosted, RequestsPerMinute: 600, Slice: 5 * time.Second, APIKey: canary})
	second, urlB := startFake(t, fakellm.Config{Provider: fakellm.SelfHosted, RequestsPerMinute: 6000, Slice: 5 * time.Second, APIKey: canary + "-b"})
	dir := dataplane.Dir(t)
	config := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(`
deployments:
  first: {baseURL: "`+urlA+`", apiKeyEnv: KEY_A, requestsPerMinute: 540}
  second: {baseURL: "`+urlB+`", apiKeyEnv: KEY_B, model: n, requestsPerMinute: 5400}
spillAfter: 50ms
burstTime: 100ms
prices: {m: {input: 1, output: 2}, n: {input: 1, output: 2}}
budget: {amount: 1, per: month}
`), 0o600))
	server := testenv.Redis(t)
	var children []*child
	for i := range 2 {
		children = append(children, startChild(t, dir, fmt.Sprint("d", i), "NUMATHROTTLE_CONFIG="+config, "KEY_A="+canary, "KEY_B="+canary+"-b",
			"NUMATHROTTLE_STORE=redis://"+server.Addr(), "NUMATHROTTLE_POOL=p"))
	}
	requireAnswered(t, prompts, children)
	for _, fake := range []*fakellm.Server{first, second} {
		require.Zero(t, fake.Stats().Refused(), "%+v", fake.Stats())
		require.Positive(t, fake.Stats().Served, "%+v", [2]int{first.Stats().Served, second.Stats().Served})
	}
	require.Equal(t, prompts, first.Stats().Served+second.Stats().Served)
	requireEnds(t, children...)
}

// What a budget counts as spent is what the calls have cost, once the process has left, and the next one goes on from there.
func TestAProcessLeavesTheBudgetAsItIsUsed(t *testing.T) {
	testkit.SkipShort(t, "it starts processes")
	for name, start := range map[string]func(*testing.T) string{
		"redis": func(t *testing.T) string { return "redis://" + testenv.Redis(t).Addr() },
		"nats":  func(t *testing.T) string { return testenv.NATS(t).URL() + "?replicas=1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := start(t)
			_, url := startFake(t, fakellm.Config{Provider: fakellm.SelfHosted, Latency: 20 * time.Millisecond})
			store, err := opening.Store(t.Context(), opening.Config{Store: at, Pool: "p"})
			require.NoError(t, err)
			defer func() { require.NoError(t, store.Close()) }()
			dir := dataplane.Dir(t)
			cost := int64(0) // in millionths, by the usage in the answers
			for _, id := range []string{"a", "b"} {
				c := startChild(t, dir, id, "LLM_MAP_BASE_URL="+url, "NUMATHROTTLE_STORE="+at, "NUMATHROTTLE_POOL=p",
					"LLM_MAP_PRICES={m: {input: 1, output: 2}}", "LLM_MAP_BUDGET={amount: 0.006, per: month}")
				for range 30 {
					out, err := c.feed.Do(t.Context(), dataplane.Message{Keys: []string{"k"}, Value: []byte("some words to repeat")})
					require.NoError(t, err)
					require.True(t, isAnswer(out), "%s", out)
					var r result
					require.NoError(t, json.Unmarshal(out[0].Value, &r))
					cost += int64(r.Usage.PromptTokens + 2*r.Usage.CompletionTokens)
				}
				requireEnds(t, c)
				spent, err := protocol.LoadSpent(t.Context(), store, "p"+account.MoneySuffix, nil)
				require.NoError(t, err)
				require.Len(t, spent, 1)
				require.Len(t, spent[0].Windows, 1)
				require.Equal(t, cost, spent[0].Windows[0].Tokens)
				t.Logf("%d of 6000 are spent", cost)
			}
		})
	}
}

// A process with api: embeddings is a batch map. SIGTERM while a call is under way loses nothing: its batch is answered.
func TestBatchesOverASocket(t *testing.T) {
	e := &embedder{perByte: 0.25, hold: make(chan struct{})}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	p, socket := startProcess(t, dataplane.Dir(t), "e", "LLM_MAP_API=embeddings", "LLM_MAP_MAX_TOKENS=0", "LLM_MAP_BASE_URL="+server.URL+"/v1",
		"LLM_MAP_IN_FLIGHT=8")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	feed, err := dataplane.DialBatchMap(ctx, socket)
	require.NoError(t, err)
	for i, size := range []int{3000, 1, 5} {
		last := i == 2
		if !last {
			go func() {
				for range (size + 2047) / 2048 {
					e.hold <- struct{}{}
				}
			}()
		} else {
			go func() {
				e.hold <- struct{}{} // the call is under way
				_ = p.Process.Signal(syscall.SIGTERM)
				e.hold <- struct{}{}
			}()
			e.mu.Lock()
			e.twice = true
			e.mu.Unlock()
		}
		var batch []dataplane.Message
		for _, text := range texts(size, 40) {
			batch = append(batch, dataplane.Message{Keys: []string{"k"}, Value: []byte(text)})
		}
		out, err := feed.Do(ctx, batch)
		require.NoError(t, err)
		require.Len(t, out, size)
		for i := range out {
			var r result
			require.Len(t, out[i], 1)
			require.NoError(t, json.Unmarshal(out[i][0].Value, &r))
			require.JSONEq(t, fmt.Sprintf("[%d,-1]", i), string(r.Embedding))
		}
	}
	_ = feed.Close()
	require.NoError(t, p.Wait())
	slices.Sort(e.calls)
	require.Equal(t, []int{1, 5, 952, 2048}, e.calls)
}
