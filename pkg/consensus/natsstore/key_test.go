package natsstore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyOf(t *testing.T) {
	for pool, want := range map[string]string{
		"default":                    "default",
		"ns/pipe-1/map_2":            "ns/pipe-1/map_2",
		"a.b":                        "a=2Eb",
		"a=2Eb":                      "a=3D2Eb",
		"a b":                        "a=20b",
		"*":                          "=2A",
		">":                          "=3E",
		"==":                         "=3D=3D",
		"_kv_reserved":               "=5Fkv_reserved",
		"\u65e5":                     "=E6=97=A5",
		strings.Repeat("x", 200):     strings.Repeat("x", 200),
		strings.Repeat("x", 201):     "==84a0678c90937f5dcf9994d5866668da6b995109c8ad845410559b48a4ecafed",
		strings.Repeat(".", 67):      "==d40ca1173d0af4f915050bfb948d5d27549ec4133625f2a2700d1fe11ff325e5",
		"\xff\n":                     "=FF=0A",
		"ns/pipe.v2/" + "map:europe": "ns/pipe=2Ev2/map=3Aeurope",
	} {
		require.Equal(t, want, keyOf(pool))
	}
}
