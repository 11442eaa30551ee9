package backoff

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// promises are what each rule is for, as something that can fail.
var promises = map[string]func() error{
	"lag": func() error {
		var s State
		for now := int64(second); now < 2*second; now += second / 20 { // refusals of calls that were under way
			s = hundred.Next(s, Step{Now: now, Lag: second, Reports: []Report{report(0, 10, 90)}, Used: 1, Offered: 1})
		}
		if got := hundred.Ceiling(s, 2*second); got < float64(per(48)) {
			return fmt.Errorf("one burst of refusals has lowered the ceiling to %.3g", got/Whole)
		}
		return nil
	},
	"binding": func() error {
		s := hundred.Next(State{}, Step{Reports: []Report{report(0, 80, 20)}})
		before := hundred.Ceiling(s, 0)
		s = hundred.Next(s, Step{Offered: 10, Used: 1})
		for now := int64(0); now < 60*second; now += second / 2 {
			s = hundred.Next(s, Step{Now: now, Offered: 10, Used: 1})
		}
		if got := hundred.Ceiling(s, 60*second); got > before {
			return fmt.Errorf("the ceiling has risen to %.3g, and nobody uses it", got/Whole)
		}
		return nil
	},
	"worst": func() error {
		reports := []Report{report(0, 30, 0), report(0, 30, 0), report(0, 0, 30)}
		if s := hundred.Next(State{}, Step{Reports: reports}); s.Generation != 0 {
			return fmt.Errorf("one bad processor of three has cut the pool")
		}
		return nil
	},
	"configured": func() error {
		s := hundred.Next(State{}, Step{Reports: []Report{report(0, 80, 20)}})
		for now := int64(0); now < 60*second; now += second / 2 {
			s = hundred.Next(s, Step{Now: now, Offered: 1, Used: 1})
			if got := hundred.Ceiling(s, now); got > Whole {
				return fmt.Errorf("the ceiling is %.3g of the limit", got/Whole)
			}
		}
		return nil
	},
}

func TestPromises(t *testing.T) {
	for name, kept := range promises {
		require.NoError(t, kept(), name)
	}
}
