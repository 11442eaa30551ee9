package statecodec_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/statecodec"
)

func TestAppendAndParse(t *testing.T) {
	a, b, c := int64(0), int64(math.MinInt64), int64(math.MaxInt64)
	text := string(statecodec.Append([]byte("x"), []*int64{&a, &b, &c}))
	require.Equal(t, "x0 -9223372036854775808 9223372036854775807", text)
	var d, e, f int64
	require.NoError(t, statecodec.Parse("p", text[1:], 100, []*int64{&d, &e, &f}))
	require.Equal(t, [3]int64{a, b, c}, [3]int64{d, e, f})
}

func TestParseTakesNothingElse(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "p: a state of 1 words, allowed: 2",
		"1 2 3":                   "p: a state of 3 words, allowed: 2",
		"1  2":                    "p: a state of 3 words, allowed: 2",
		"01 2":                    `p: word 1 of a state is "01", allowed: a decimal number`,
		"1 +2":                    `p: word 2 of a state is "+2", allowed: a decimal number`,
		"1 -0":                    `p: word 2 of a state is "-0", allowed: a decimal number`,
		"1 ":                      `p: word 2 of a state is "", allowed: a decimal number`,
		"9223372036854775808 0":   `p: word 1 of a state is "9223372036854775808", allowed: a decimal number`,
		strings.Repeat("1", 1000): "p: a state of 1000 bytes, allowed: at most 100",
	} {
		var a, b int64
		require.EqualError(t, statecodec.Parse("p", text, 100, []*int64{&a, &b}), want, text)
	}
}

func TestCheck(t *testing.T) {
	c := statecodec.Check{Owner: "p"}
	c.Within("low", 1, 1, 2)
	c.Within("high", 2, 1, 2)
	require.NoError(t, c.Err())
	c.Within("at", 3, 1, 2)
	c.Within("cut", 0, 1, 2)
	require.EqualError(t, c.Err(), "p: at of a state is 3, allowed: 1 to 2\np: cut of a state is 0, allowed: 1 to 2")
}
