package ramp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStateText(t *testing.T) {
	s := State{
		At: 12_345_678, Second: 12_000_000, From: 500_000, To: 1_000_000, Base: 900_000, Missed: 2, Used: 7, Offered: 8,
		Min: 10, Max: 20, Per: 1_000_000, Ramp: 60_000_000,
	}
	const text = "12345678 12000000 500000 1000000 900000 2 7 8 10 20 1000000 60000000"
	got, err := s.AppendText([]byte("ramp "))
	require.NoError(t, err)
	require.Equal(t, "ramp "+text, string(got))
	again, err := ParseState(text)
	require.NoError(t, err)
	require.Equal(t, s, again)

	zero, err := State{}.AppendText(nil)
	require.NoError(t, err)
	none, err := ParseState(string(zero))
	require.NoError(t, err)
	require.Zero(t, none)

	s.To = s.From + second + 1
	_, err = s.AppendText(nil)
	require.ErrorContains(t, err, "to of a state is 1500001, allowed: 0 to 1500000")
}

// Nothing is read that Next cannot have returned, and the error says what is wrong.
func TestParseStateRefuses(t *testing.T) {
	fields := strings.Fields("12345678 12000000 500000 1000000 900000 2 7 8 10 20 1000000 60000000")
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
		{9, "0", "max of a state is 0"},
		{10, "999", "per of a state is 999, allowed: 1000 to 2678400000000"},
		{11, "0", "ramp of a state is 0"},
		{5, "02", `word 6 of a state is "02", allowed: a decimal number`},
		{5, "+2", `word 6 of a state is "+2"`},
		{5, "2.0", `word 6 of a state is "2.0"`},
		{5, "", `word 6 of a state is ""`},
		{5, "99999999999999999999", "word 6"},
		{5, "2 2", "a state of 13 words, allowed: 12"},
		{5, strings.Repeat("2", 300), "bytes, allowed: at most"},
	} {
		words := append([]string{}, fields...)
		words[tc.field] = tc.value
		s, err := ParseState(strings.Join(words, " "))
		require.ErrorContains(t, err, tc.says)
		require.Zero(t, s)
	}
}
