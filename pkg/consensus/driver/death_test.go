package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestsThatNameDeaths(t *testing.T) {
	good := Request{
		Pool: "pool", ID: "a", Incarnation: "1", Seq: 1, Lease: DefaultLease, Report: Report{},
		Dead: []Death{{Incarnation: "2", Last: Ticket{7, 7}, Unanswered: []Ticket{{8, 1}}}, {Incarnation: "3"}},
	}
	require.NoError(t, good.Validate())
	for name, dead := range map[string][]Death{
		"the sender":     {{Incarnation: "1"}},
		"no name":        {{}},
		"twice":          {{Incarnation: "2"}, {Incarnation: "2"}},
		"too many":       make([]Death, MaxDead+1),
		"falling":        {{Incarnation: "2", Unanswered: []Ticket{{2, 1}, {1, 1}}}},
		"below the last": {{Incarnation: "2", Last: Ticket{3, 3}, Unanswered: []Ticket{{3, 1}}}},
	} {
		bad := good
		bad.Dead = dead
		var wrong *RequestError
		require.ErrorAs(t, bad.Validate(), &wrong, name)
		require.Equal(t, "Dead", wrong.Field, name)
	}
}
