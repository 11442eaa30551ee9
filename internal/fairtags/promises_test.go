package fairtags_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
)

// promises are what each rule of the policy is for. Each says what is broken, if anything.
var promises = map[string]func() error{
	// Three tags have reserved half of the limit each, as before a lower ceiling: each gets a third.
	"alike": func() error {
		tags := []fairtags.Terms{terms(1, 50, inf), terms(2, 50, inf), terms(3, 50, inf)}
		p := fairtags.Divide(100, tags, []fairtags.Row{asks(0, 1, 80, 2, 80, 3, 80)}, 0)
		return least(p, 33, 33, 33)
	},
	// A processor died. What its callers asked for is there for others.
	"silent": func() error {
		dead := asks(10, 1, 80)
		dead.Silent = true
		p := fairtags.Divide(100, []fairtags.Terms{terms(1, 80, inf), terms(2, 0, inf)}, []fairtags.Row{dead, asks(0, 2, 80)}, 1)
		return least(p, 0, 80)
	},
	// A batch tag with something reserved does not starve another one.
	"class": func() error {
		tags := []fairtags.Terms{terms(1, 0, inf), terms(2, 10, inf), terms(3, 0, inf)}
		tags[1].Class, tags[2].Class = 1, 1
		p := fairtags.Divide(100, tags, []fairtags.Row{asks(0, 1, 500, 2, 500, 3, 500)}, 0)
		return least(p, 80, 10, 4.9)
	},
	// Ten thousand names that nobody knows take no more than one.
	"other": func() error {
		var tags []fairtags.Terms
		var flood fairtags.Row
		known := make([]float64, 40)
		for i := range known {
			known[i] = 100. / 41
			tags = append(tags, terms(uint64(1+i), 0, inf))
			flood.Busy = append(flood.Busy, fairtags.Busy{Key: uint64(1 + i), Rate: 10})
		}
		for i := range 10_000 {
			flood.Busy = append(flood.Busy, fairtags.Busy{Key: uint64(1000 + i), Rate: 10})
		}
		return least(fairtags.Divide(100, tags, []fairtags.Row{flood}, 0), known...)
	},
	// A tag that comes leaves a tag that is there its guarantee until the processor has more.
	"held": func() error {
		row := asks(30, 1, 30, 2, 30)
		row.Held = []fairtags.Busy{{Key: 1, Rate: 30}}
		p := fairtags.Divide(100, []fairtags.Terms{terms(1, 30, inf), terms(2, 30, inf)}, []fairtags.Row{row}, 0)
		if p.Own[0] < 30 {
			return fmt.Errorf("a tag had 30 and has %g", p.Own[0])
		}
		return nil
	},
}

// least says which of the tags get less than they should.
func least(p fairtags.Plan, should ...float64) error {
	for i, s := range should {
		if got := p.Targets[i].Rate; got < s-near {
			return fmt.Errorf("tag %d gets %g, which should be %g at least", i+1, got, s)
		}
	}
	return nil
}

func TestPromises(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(promises)) {
		require.NoError(t, promises[name](), name)
	}
}
