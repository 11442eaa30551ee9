package ramp

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
)

const stateText = "12345678 12000000 500000 1000000 900000 2 7 8 10 20 1000000 60000000"

func TestStateText(t *testing.T) {
	s := state.Shared[State]{Epoch: 5, State: State{
		At: 12_345_678, Second: 12_000_000, From: 500_000, To: 1_000_000, Base: 900_000, Missed: 2, Used: 7, Offered: 8,
		Min: 10, Max: 20, Per: 1_000_000, Ramp: 60_000_000,
	}}
	got, err := state.Text(s)
	require.NoError(t, err)
	require.Equal(t, "1 5 "+stateText, string(got))
	again, err := state.Parse[State](string(got))
	require.NoError(t, err)
	require.Equal(t, s, again)
	s.State.To = s.State.From + second + 1
	_, err = state.Text(s)
	require.ErrorContains(t, err, "to of a state is 1500001, allowed: 0 to 1500000")
}

// Nothing is read that Next cannot have returned, and the error says what is wrong.
func TestParseStateRefuses(t *testing.T) {
	for _, tc := range []struct {
		field int
		value string
		says  string
	}{
		{0, "-1", "at of a state is -1, allowed: 0 to 9007199254740991"},
		{0, "9007199254740992", "at of a state"},
		{0, "13000000", "second of a state is 12000000, allowed: 12000001 to 13000000"},
		{1, "12345679", "second of a state is 12345679"},
		{2, "60000001", "from of a state is 60000001, allowed: 0 to 60000000"},
		{3, "-1", "to of a state is -1"},
		{4, "60000001", "base of a state"},
		{5, "1000000001", "missed of a state"},
		{6, "-1", "used of a state"},
		{7, "10000000000001", "offered of a state is 10000000000001, allowed: 0 to 10000000000000"},
		{8, "0", "min of a state is 0, allowed: 1 to 20"},
		{8, "21", "min of a state is 21"},
		{9, "0", "min of a state is 10, allowed: 1 to 0"},
		{10, "999", "per of a state is 999, allowed: 1000 to 2678400000000"},
		{9, "1000000001", "max of a state is 1000000001"},
		{11, "2678400000001", "ramp of a state is 2678400000001"},
		{5, "02", "another release"},
		{5, "+2", "another release"},
		{5, "2.0", "another release"},
		{5, "", "another release"},
		{11, "60000000 2", "another release"},
		{11, "60000000 ", "another release"},
	} {
		words := strings.Fields(stateText)
		words[tc.field] = tc.value
		s, err := state.Parse[State]("1 0 " + strings.Join(words, " "))
		require.ErrorContains(t, err, tc.says)
		require.Zero(t, s)
	}
}

// Any text is an error, or the one form of a state that Next goes on from.
func FuzzParseState(f *testing.F) {
	c := Config{Min: 10, Max: 20, Per: time.Second, RampUpDuration: time.Minute, Mode: GoBackN, CoolDownPeriod: time.Second, TTL: time.Hour}
	for _, seed := range []string{
		"1 5 " + stateText, "1 0 0 0 0 0 0 0 0 0 0 0 0 0", "1 0 1 1 0 0 0 0 0 0 1 1 1000 +1000", "2 0", "1", strings.Repeat("9", 300), "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := state.Parse[State](text)
		if err != nil {
			require.Zero(t, s)
			return
		}
		again, err := state.Text(s)
		require.NoError(t, err)
		require.Equal(t, text, string(again), "a state has one form")
		next, ceiling := c.Next(s.State, Step{Now: s.State.At + 1_234_567, Used: 1, Offered: 1})
		requireSound(t, c, next, ceiling)
	})
}
