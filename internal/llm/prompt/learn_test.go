package prompt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
)

func TestRatio(t *testing.T) {
	var r prompt.Ratio
	s := prompt.Size{Bytes: 1000}
	require.InDelta(t, 0.25, r.PerByte(), 0)
	require.Equal(t, int64(250), r.Tokens(s))
	learn := func(times int, charged int64) {
		for range times {
			r.Learn(s, charged)
		}
	}
	learn(100, 500)
	require.InEpsilon(t, 0.5, r.PerByte(), 0.05)
	learn(100, 150)
	require.InEpsilon(t, 0.15, r.PerByte(), 0.05)
	before := r.PerByte()
	learn(1, 1_000_000_000)
	require.Less(t, r.PerByte()-before, 0.05, "one wrong answer moves it little")
	before = r.PerByte()
	r.Learn(prompt.Size{Bytes: 1000, Tokens: 1600}, 2600)
	require.InDelta(t, before, r.PerByte(), 0, "a prompt with media teaches nothing")
	r.Learn(prompt.Size{}, 1600)
	r.Learn(prompt.Size{}, 0)
	require.InDelta(t, before, r.PerByte(), 0, "and neither does none")
	learn(1000, 0)
	require.InDelta(t, prompt.LeastPerByte, r.PerByte(), 1e-9)
	learn(1000, 1e12)
	require.InDelta(t, 1, r.PerByte(), 1e-9)
	// Media cost what they cost, and teach nothing.
	r.Learn(prompt.Size{Bytes: 1, Tokens: 1600}, 1600)
	require.InDelta(t, 1, r.PerByte(), 1e-9)
	require.Equal(t, int64(1601), r.Tokens(prompt.Size{Bytes: 1, Tokens: 1600}))
	require.Equal(t, int64(prompt.Most), r.Tokens(prompt.Size{Bytes: prompt.Most, Tokens: prompt.Most}))
}

func TestCharacters(t *testing.T) {
	require.Equal(t, int64(2000), prompt.Size{Chars: 8000}.ByChars())
	require.Equal(t, int64(1603), prompt.Size{Chars: 9, Tokens: 1600}.ByChars())
	require.Equal(t, int64(51), prompt.Size{Bytes: 1001}.Least())
}

func TestAnswers(t *testing.T) {
	a := prompt.NewAnswers(1024)
	free, bound := prompt.Size{}, prompt.Size{Answer: 64_000}
	require.Equal(t, int64(1024), a.Tokens(free))
	require.Equal(t, int64(500), a.Tokens(prompt.Size{Answer: 500}))
	require.Equal(t, int64(1024), a.Longest(free))
	require.Equal(t, int64(64_000), a.Longest(bound))
	for range 20 {
		a.Learn(300)
	}
	require.LessOrEqual(t, a.Tokens(bound), int64(360))
	require.Greater(t, a.Tokens(bound), int64(300))
	for range 200 {
		a.Learn(300)
	}
	require.InDelta(t, 300, a.Tokens(bound), 2)
	require.InDelta(t, 300, a.Longest(free), 2)
	for range 200 {
		a.Learn(3000)
	}
	require.InDelta(t, 3000, a.Tokens(free), 20)
	require.Equal(t, int64(1024), a.Longest(free), "no longer than is assumed")
	a.Learn(0)
	require.InDelta(t, 3000, a.Tokens(free), 20, "no answer teaches nothing")
	require.Zero(t, a.Tokens(prompt.Size{Silent: true}))
	require.Zero(t, a.Longest(prompt.Size{Silent: true}))
}
