package driver

import (
	"testing"
	"time"

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

// The death of an incarnation that is not on record, or has left, changes no row.
func TestDeathsOfOthersChangeNoRow(t *testing.T) {
	r := standing(holder("a", "2", half), closed(RowLeft, holder("a", "4", 0)))
	req := follow(Report{})
	req.Incarnation, req.LastSeq, req.LastNonce, req.LastTime = "9", 0, 0, 0
	req.Dead = []Death{{Incarnation: "1"}, {Incarnation: "3"}, {Incarnation: "4", Last: Ticket{7, 700}}}
	require.NoError(t, req.Validate())
	ans, _ := r.Sync(&req, after(time.Second))
	require.Equal(t, Granted, ans.Status)
	require.Equal(t, []RowState{RowReplaced, RowLeft, RowLive}, []RowState{r.Rows[0].State, r.Rows[1].State, r.Rows[2].State})
	require.Equal(t, half, r.Claims())
}
