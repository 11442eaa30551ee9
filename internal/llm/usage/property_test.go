package usage_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
)

// A call is what was used in truth: uncached input with the results of tools, cache writes and reads, output with thoughts.
type call struct{ input, tools, writes, reads, output, thoughts int }

func (c call) prompt() int { return c.input + c.writes + c.reads }

// randomCall returns a call of any size, of which anything but the prompt may be 0.
func randomCall(rng *rand.Rand) call {
	n := func() int { return rng.IntN(2) * rng.IntN(1+[]int{9, 900, 90_000}[rng.IntN(3)]) }
	c := call{input: 1 + n(), writes: n(), reads: n(), output: n()}
	c.tools, c.thoughts = rng.IntN(c.input), rng.IntN(c.output+1)
	return c
}

// A speaker writes a call in a dialect, as figures by the path of their names. It may tell no total.
type speaker func(c call, total bool) map[string]int

func withTotal(figures map[string]int, name string, n int, told bool) map[string]int {
	if told {
		figures[name] = n
	}
	return figures
}

func chat(c call, total bool) map[string]int {
	return withTotal(map[string]int{
		"prompt_tokens": c.prompt(), "completion_tokens": c.output, "completion_tokens_details.reasoning_tokens": c.thoughts,
		"prompt_tokens_details.cached_tokens": c.reads, "prompt_tokens_details.cache_write_tokens": c.writes,
	}, "total_tokens", c.prompt()+c.output, total)
}

func responses(c call, total bool) map[string]int {
	return withTotal(map[string]int{
		"input_tokens": c.prompt(), "output_tokens": c.output, "output_tokens_details.reasoning_tokens": c.thoughts,
		"input_tokens_details.cached_tokens": c.reads, "input_tokens_details.cache_write_tokens": c.writes,
	}, "total_tokens", c.prompt()+c.output, total)
}

func anthropic(c call, _ bool) map[string]int {
	return map[string]int{
		"input_tokens": c.input, "cache_read_input_tokens": c.reads, "cache_creation_input_tokens": c.writes, "output_tokens": c.output,
		"cache_creation.ephemeral_5m_input_tokens": c.writes / 2, "cache_creation.ephemeral_1h_input_tokens": c.writes - c.writes/2,
	}
}

func converse(c call, total bool) map[string]int {
	return withTotal(map[string]int{
		"inputTokens": c.input, "cacheReadInputTokens": c.reads, "cacheWriteInputTokens": c.writes, "outputTokens": c.output,
	}, "totalTokens", c.prompt()+c.output, total)
}

func invoke(c call, _ bool) map[string]int {
	return map[string]int{
		"inputTokenCount": c.input, "cacheReadInputTokenCount": c.reads, "cacheWriteInputTokenCount": c.writes, "outputTokenCount": c.output,
	}
}

func gemini(c call, total bool) map[string]int {
	return withTotal(map[string]int{
		"promptTokenCount": c.prompt() - c.tools, "toolUsePromptTokenCount": c.tools, "cachedContentTokenCount": c.reads,
		"candidatesTokenCount": c.output - c.thoughts, "thoughtsTokenCount": c.thoughts,
	}, "totalTokenCount", c.prompt()+c.output, total)
}

func deepSeek(c call, total bool) map[string]int {
	return withTotal(map[string]int{
		"prompt_tokens": c.prompt(), "prompt_cache_hit_tokens": c.reads, "prompt_cache_miss_tokens": c.input, "completion_tokens": c.output,
	}, "total_tokens", c.prompt()+c.output, total)
}

func cohere(c call, _ bool) map[string]int {
	return map[string]int{
		"tokens.input_tokens": c.prompt(), "tokens.output_tokens": c.output,
		"billed_units.input_tokens": c.prompt() / 2, "billed_units.output_tokens": c.output,
	}
}

// A mixture is a call in some dialects at once, and the figures of it.
type mixture struct {
	call

	figures map[string]int
	total   int // as the usage has it
}

// mix returns a random call in random dialects that can be told at once: OpenAI's responses and Anthropic give the same names to other figures.
func mix(rng *rand.Rand) mixture {
	m := mixture{call: randomCall(rng), figures: map[string]int{}}
	natives := [][]speaker{{anthropic}, {converse}, {invoke}, {anthropic, invoke}, {anthropic, converse, chat}}[rng.IntN(5)]
	speakers := [][]speaker{
		{chat},
		{responses},
		natives,
		{gemini},
		{deepSeek},
		{cohere},
		{chat, responses},
		append([]speaker{chat}, natives...),
		{chat, gemini},
		append([]speaker{gemini}, natives...),
		{deepSeek, anthropic},
		{deepSeek, chat, gemini},
		{responses, gemini},
		{cohere, chat},
	}[rng.IntN(14)]
	of := func(s ...speaker) bool {
		return slices.ContainsFunc(speakers, func(have speaker) bool {
			return slices.ContainsFunc(s, func(s speaker) bool { return fmt.Sprintf("%p", s) == fmt.Sprintf("%p", have) })
		})
	}
	if !of(gemini) {
		m.tools = 0
	}
	if of(deepSeek, cohere) || !of(chat, responses, anthropic, converse, invoke) { // without cache writes
		m.writes = 0
	}
	if of(cohere) {
		m.reads = 0
	}
	total := rng.IntN(2) == 0
	for _, s := range speakers {
		maps.Copy(m.figures, s(m.call, total))
	}
	told := of(chat, responses, gemini, deepSeek, cohere) || total && of(converse)
	if m.total = m.prompt() + m.output; m.reads+m.writes > 0 && !told { // the reads may be free
		m.total = 0
	}
	return m
}

// read reads some figures, in random groups and order, as the events of a stream.
func (m mixture) read(rng *rand.Rand, figures map[string]string) (u usage.Usage, found bool) {
	var r usage.Reader
	objects := make([]map[string]any, 1+rng.IntN(3))
	for _, path := range slices.Sorted(maps.Keys(figures)) {
		n := figures[path]
		i := rng.IntN(len(objects))
		if objects[i] == nil {
			objects[i] = map[string]any{}
		}
		at := objects[i]
		part, name, nested := strings.Cut(path, ".")
		if !nested {
			at[part] = json.RawMessage(n)
			continue
		}
		inner, _ := at[part].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
		}
		inner[name] = json.RawMessage(n)
		at[part] = inner
	}
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			panic(err)
		}
		r.Add(text)
	}
	return r.Usage()
}

func (m mixture) texts() map[string]string {
	texts := map[string]string{}
	for path, n := range m.figures {
		texts[path] = fmt.Sprint(n)
	}
	return texts
}

// The same figures in any dialects are the same four numbers.
func TestMixedDialectsTellTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		m := mix(rng)
		u, found := m.read(rng, m.texts())
		require.True(t, found)
		require.Equal(t, [4]int{m.input, m.writes, m.reads, m.output}, [4]int{u.Input, u.CacheWrites, u.CacheReads, u.Output}, "%+v", m)
		require.Equal(t, m.total, u.Total, "%+v", m)
		require.True(t, u.HasInput && u.HasOutput, "%+v", m)
		require.LessOrEqual(t, u.CacheWrites1h, u.CacheWrites)
	}
}

// optional are figures that can be missing unnoticed: nothing tells that a call had them.
var optional = []string{
	"cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens", "cacheReadInputTokenCount",
	"cacheWriteInputTokenCount", "cache_creation.", "toolUsePromptTokenCount", "thoughtsTokenCount", "tokens.",
}

// A figure that is missing or can't be never lowers the cost, if what is not known of a call counts as drawn. It is known to be missing,
// unless it is optional.
func TestAWrongFigureNeverLowersTheCost(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	absurd := []string{"-1", "-0.5", "-1e300", "1e10", "1e300", "1e999", `"NaN"`, `"-Infinity"`, "3000001", "2147483648000"}
	for range 20_000 {
		m := mix(rng)
		texts := m.texts()
		path := slices.Sorted(maps.Keys(texts))[rng.IntN(len(texts))]
		if rng.IntN(2) == 0 {
			texts[path] = absurd[rng.IntN(len(absurd))]
		} else {
			if slices.ContainsFunc(optional, func(o string) bool { return strings.HasPrefix(path, o) }) {
				continue
			}
			delete(texts, path)
		}
		u, _ := m.read(rng, texts)
		require.GreaterOrEqual(t, min(u.Input, u.Output, u.CacheReads, u.CacheWrites, u.CacheWrites1h, u.Total), 0)
		for _, reads := range []int{0, 1} {
			for _, weight := range []int{0, 1, 15} {
				truth := m.input + m.writes + reads*m.reads + weight*m.output
				got := u.Input + u.CacheWrites + reads*u.CacheReads
				if !u.HasInput {
					got = max(got, m.prompt())
				}
				written := u.Output
				if !u.HasOutput {
					written = max(written, m.output)
				}
				require.GreaterOrEqual(t, got+weight*written, truth, "%s %s of %+v: %+v", path, texts[path], m, u)
			}
		}
	}
}

// No figures at all, however they contradict each other, tell less than nothing or more than can be believed.
func TestContradictoryFigures(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	values := []string{"0", "1", "50", "1000", "200000", "1999999", "2000000", "2000001", "999999", "1000000", "-1", "1e99", `"9"`, "null", "{}", "[1]", "0.5"}
	for range 10_000 {
		texts := map[string]string{}
		for range 1 + rng.IntN(3) {
			m := mix(rng)
			for _, path := range slices.Sorted(maps.Keys(m.figures)) {
				texts[path] = values[rng.IntN(len(values))]
			}
		}
		u, found := mixture{}.read(rng, texts)
		require.GreaterOrEqual(t, min(u.Input, u.Output, u.CacheReads, u.CacheWrites, u.CacheWrites1h, u.Total), 0)
		require.LessOrEqual(t, u.CacheWrites1h, u.CacheWrites)
		require.LessOrEqual(t, u.Output, 1_000_000)
		require.LessOrEqual(t, max(u.Input+u.CacheWrites+u.CacheReads+u.Output, u.Total), 3_000_000, "%v", texts)
		require.Equal(t, found, u != usage.Usage{})
		if u.HasInput {
			require.LessOrEqual(t, u.Input+u.CacheWrites+u.CacheReads, 2_000_000)
		}
	}
}
