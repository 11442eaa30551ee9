package ceiling

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One of three processors or more cannot lower the limit of all by what it alone was told.
func TestAgree(t *testing.T) {
	minute := func(n int64) Rate { return Rate{n, time.Minute} }
	for name, tc := range map[string]struct {
		reports    []Rate
		processors int
		first      int64
		want       Rate
	}{
		"nobody was told anything":     {nil, 3, 60, Rate{}},
		"one alone":                    {[]Rate{minute(5)}, 1, 0, minute(5)},
		"two differ":                   {[]Rate{minute(9), minute(5)}, 2, 0, minute(5)},
		"one of two":                   {[]Rate{minute(5)}, 2, 0, minute(5)},
		"one of three":                 {[]Rate{minute(5)}, 3, 0, Rate{}},
		"one of three above the first": {[]Rate{minute(500)}, 3, 60, minute(500)},
		"one of three at the first":    {[]Rate{{1, time.Second}}, 3, 60, Rate{1, time.Second}},
		"one of three below the first": {[]Rate{minute(5)}, 3, 60, Rate{}},
		"one of two below the first":   {[]Rate{minute(5)}, 2, 60, minute(5)},
		"two of three below the first": {[]Rate{minute(5), minute(7)}, 3, 60, minute(7)},
		"one of four was told one":     {[]Rate{minute(600), minute(1), minute(600), minute(600)}, 4, 0, minute(600)},
		"two of four were told less":   {[]Rate{minute(600), minute(300), minute(300), minute(600)}, 4, 60, minute(300)},
		"in other periods":             {[]Rate{{10, time.Second}, minute(590), minute(700)}, 3, 0, Rate{10, time.Second}},
	} {
		require.Equal(t, tc.want, Agree(tc.reports, tc.processors, Rate{tc.first, time.Minute}), name)
	}
}

// An override is stronger than what is announced, which only lowers the limit of those that follow it.
func TestAnnouncedLimit(t *testing.T) {
	minute := func(n int64) Rate { return Rate{n, time.Minute} }
	for name, tc := range map[string]struct {
		law  Law
		want Rate
	}{
		"not followed":           {Law{}, minute(600)},
		"followed":               {Law{Config: Config{Follows: true}, Announced: minute(5)}, minute(5)},
		"another follows":        {Law{Announced: minute(5)}, minute(5)},
		"more than configured":   {Law{Config: Config{Follows: true}, Announced: minute(700)}, minute(600)},
		"more than another's":    {Law{Config: Config{Follows: true}, Announced: minute(500), Lowest: minute(400)}, minute(400)},
		"nothing is announced":   {Law{Config: Config{Follows: true}}, minute(600)},
		"before anything is":     {Law{Config: Config{Follows: true, First: 60}}, minute(60)},
		"after the first answer": {Law{Config: Config{Follows: true, First: 60}, Announced: minute(500)}, minute(500)},
		"overridden":             {Law{Config: Config{Follows: true, First: 60}, Announced: minute(5), Override: minute(50)}, minute(50)},
	} {
		tc.law.Config.Limit = minute(600)
		require.Equal(t, tc.want, tc.law.Limit(), name)
		require.InDelta(t, tc.want.Tokens(time.Minute), tc.law.At(0, 0), 1e-9, name)
	}
}
