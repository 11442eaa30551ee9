package fairtags_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
)

var inf = math.Inf(1)

// terms are those of a tag that has reserved something and may use a total.
func terms(key uint64, reserved, total float64) fairtags.Terms {
	return fairtags.Terms{Key: key, Reserved: reserved, Total: total, Limiting: inf, Weight: 1}
}

// asks is a row at which keys ask for rates, told in pairs.
func asks(claim float64, pairs ...float64) fairtags.Row {
	row := fairtags.Row{Claim: claim}
	for i := 0; i < len(pairs); i += 2 {
		row.Busy = append(row.Busy, fairtags.Busy{Key: uint64(pairs[i]), Rate: pairs[i+1]})
	}
	return row
}

func rates(p fairtags.Plan) (rates []float64) {
	for _, t := range p.Targets {
		rates = append(rates, t.Rate)
	}
	return rates
}

func by(p fairtags.Plan) (by []string) {
	for _, t := range p.Targets {
		by = append(by, t.By)
	}
	return by
}

func TestTheLimitIsDividedAmongTagsFirst(t *testing.T) {
	batch := func(t fairtags.Terms) fairtags.Terms { t.Class = 1; return t }
	weight := func(t fairtags.Terms, w float64) fairtags.Terms { t.Weight = w; return t }
	limiting := func(t fairtags.Terms, l float64) fairtags.Terms { t.Limiting = l; return t }
	for name, c := range map[string]struct {
		limit float64
		tags  []fairtags.Terms
		rows  []fairtags.Row
		rates []float64
		by    []string
		wants []float64
	}{
		"all get what they ask for, and the rest is divided equally": {
			100,
			[]fairtags.Terms{terms(1, 50, inf), terms(2, 0, inf)},
			[]fairtags.Row{asks(0, 1, 20), asks(0, 2, 40)},
			[]float64{20, 40},
			[]string{"demand", "demand"},
			[]float64{40, 60},
		},
		"a hog on many rows leaves what is reserved for a tag on one": {
			100,
			[]fairtags.Terms{terms(1, 30, inf), terms(2, 0, inf)},
			[]fairtags.Row{asks(0, 1, 30), asks(0, 2, 500), asks(0, 2, 500)},
			[]float64{30, 70},
			[]string{"demand", "limit"},
			[]float64{30, 35, 35},
		},
		"what is reserved and not asked for goes to others": {
			100,
			[]fairtags.Terms{terms(1, 60, inf), terms(2, 0, inf)},
			[]fairtags.Row{asks(0, 1, 10, 2, 500)},
			[]float64{10, 90},
			[]string{"demand", "limit"},
			[]float64{100},
		},
		"a total holds a tag, and what it leaves goes to others": {
			100,
			[]fairtags.Terms{terms(1, 0, 20), terms(2, 0, inf)},
			[]fairtags.Row{asks(0, 1, 200, 2, 50)},
			[]float64{20, 50},
			[]string{"total", "demand"},
			[]float64{100},
		},
		"what is guaranteed counts in the tag's fair part": {
			100,
			[]fairtags.Terms{terms(1, 60, inf), terms(2, 0, inf), terms(3, 0, inf)},
			[]fairtags.Row{asks(0, 1, 200, 2, 200, 3, 200)},
			[]float64{60, 20, 20},
			[]string{"reserved", "limit", "limit"},
			[]float64{100},
		},
		"weights count in what is not reserved": {
			120,
			[]fairtags.Terms{weight(terms(1, 0, inf), 3), terms(2, 0, inf), terms(3, 5, inf)},
			[]fairtags.Row{asks(0, 1, 500, 2, 500, 3, 20)},
			[]float64{75, 25, 20},
			[]string{"limit", "limit", "demand"},
			[]float64{120},
		},
		"more is reserved than there is": {
			100,
			[]fairtags.Terms{terms(1, 100, inf), terms(2, 50, inf), terms(3, 50, inf)},
			[]fairtags.Row{asks(0, 1, 100, 2, 50, 3, 500)},
			[]float64{50, 25, 25},
			[]string{"limit", "limit", "limit"},
			[]float64{100},
		},
		"a lower class keeps a twentieth beside what it has reserved": {
			100,
			[]fairtags.Terms{terms(1, 0, inf), batch(terms(2, 10, inf)), batch(terms(3, 0, inf))},
			[]fairtags.Row{asks(0, 1, 500, 2, 10, 3, 500)},
			[]float64{85, 10, 5},
			[]string{"limit", "demand", "class"},
			[]float64{100},
		},
		"a lower class that asks for less leaves the rest": {
			100,
			[]fairtags.Terms{terms(1, 0, inf), batch(terms(2, 0, inf))},
			[]fairtags.Row{asks(0, 1, 500, 2, 3)},
			[]float64{97, 3},
			[]string{"limit", "demand"},
			[]float64{100},
		},
		"a lower class gets what the first one leaves": {
			100,
			[]fairtags.Terms{terms(1, 0, 30), batch(terms(2, 0, inf))},
			[]fairtags.Row{asks(0, 1, 500, 2, 500)},
			[]float64{30, 70},
			[]string{"total", "class"},
			[]float64{100},
		},
		"lower classes take half of what is left at most": {
			100,
			[]fairtags.Terms{terms(1, 96, inf), terms(2, 0, inf), batch(terms(3, 0, inf))},
			[]fairtags.Row{asks(0, 1, 96, 2, 500, 3, 500)},
			[]float64{96, 2, 2},
			[]string{"demand", "limit", "class"},
			[]float64{100},
		},
		"tags that are not known are one tag": {
			100,
			[]fairtags.Terms{terms(0, 0, inf), terms(1, 0, inf)},
			[]fairtags.Row{asks(0, 1, 500, 77, 500, 78, 500), asks(0, 79, 500)},
			[]float64{50, 50},
			[]string{"limit", "limit"},
			[]float64{50 + 25, 25},
		},
		"nor need they be among the terms": {
			100,
			[]fairtags.Terms{terms(1, 0, inf)},
			[]fairtags.Row{asks(0, 1, 500, 77, 500, 78, 500)},
			[]float64{50},
			[]string{"limit"},
			[]float64{100},
		},
		"the called service takes less": {
			100,
			[]fairtags.Terms{limiting(terms(1, 0, 50), 20), limiting(terms(2, 30, 50), 20)},
			[]fairtags.Row{asks(0, 1, 500, 2, 500)},
			[]float64{20, 30},
			[]string{"limiting", "reserved"},
			[]float64{100},
		},
		"a tag is divided by a water level": {
			100,
			[]fairtags.Terms{terms(1, 0, 20)},
			[]fairtags.Row{asks(0, 1, 5), asks(0, 1, 25)},
			[]float64{20},
			[]string{"total"},
			[]float64{5 + 40, 15 + 40},
		},
		"a silent row keeps its claim and has no demand": {
			100,
			[]fairtags.Terms{terms(1, 50, inf), terms(2, 0, inf)},
			[]fairtags.Row{{Claim: 40, Silent: true, Busy: []fairtags.Busy{{Key: 1, Rate: 50}}}, asks(0, 2, 500)},
			[]float64{0, 60},
			[]string{"demand", "limit"},
			[]float64{40, 60},
		},
		"what does not fit into Busy is reserved or of other tags": {
			100,
			[]fairtags.Terms{terms(0, 0, 10), terms(1, 0, inf)},
			[]fairtags.Row{{Rest: 50, RestReserved: 20}, asks(0, 1, 500)},
			[]float64{10, 70},
			[]string{"total", "limit"},
			[]float64{30, 70},
		},
		"what is no rate is nothing": {
			100,
			[]fairtags.Terms{{Key: 1, Reserved: math.NaN(), Total: inf, Limiting: inf}, terms(2, 0, inf)},
			[]fairtags.Row{asks(math.NaN(), 1, -5, 2, 500), asks(-3, 1, math.NaN()), {Rest: -1, RestReserved: inf}},
			[]float64{0, 100},
			[]string{"demand", "limit"},
			[]float64{100, 0, 0},
		},
		"a weight that is none is 1": {
			120,
			[]fairtags.Terms{weight(terms(1, 0, inf), 0), weight(terms(2, 0, inf), 3), weight(terms(3, 0, inf), math.NaN()), weight(terms(4, 0, inf), -2)},
			[]fairtags.Row{asks(0, 1, 500, 2, 500, 3, 500, 4, 500)},
			[]float64{20, 60, 20, 20},
			[]string{"limit", "limit", "limit", "limit"},
			[]float64{120},
		},
		"without rows": {100, []fairtags.Terms{terms(1, 5, 5)}, nil, []float64{0}, []string{"demand"}, []float64{}},
		"without a limit": {
			0,
			[]fairtags.Terms{terms(1, 5, 5)},
			[]fairtags.Row{asks(5, 1, 5)},
			[]float64{0},
			[]string{"limit"},
			[]float64{0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := fairtags.Divide(c.limit, c.tags, c.rows, -1)
			require.InDeltaSlice(t, c.rates, rates(p), 1e-9)
			require.Equal(t, c.by, by(p))
			require.InDeltaSlice(t, c.wants, p.Wants, 1e-9)
		})
	}
}

func TestAPlanTellsWhatATagCouldGet(t *testing.T) {
	tags := []fairtags.Terms{
		terms(1, 0, inf), terms(2, 10, 40), {Key: 3, Total: 40, Limiting: 20, Weight: 1}, {Key: 4, Reserved: 30, Total: 40, Limiting: 20, Weight: 1},
	}
	p := fairtags.Divide(100, tags, []fairtags.Row{asks(0, 1, 1, 2, 1, 3, 1, 4, 1)}, 0)
	bounds := make([]float64, len(tags))
	for i, target := range p.Targets {
		bounds[i] = target.Bound
		require.InDelta(t, 1, target.Demand, 0)
	}
	require.InDeltaSlice(t, []float64{100, 40, 20, 30}, bounds, 0)
	require.InDelta(t, 1, p.Scale, 0)
}

func TestScaleTellsWhatIsLeftOfAllThatIsReserved(t *testing.T) {
	p := fairtags.Divide(50, []fairtags.Terms{terms(1, 60, inf), terms(2, 40, inf)}, []fairtags.Row{asks(0, 1, 100, 2, 100)}, 0)
	require.InDelta(t, 0.5, p.Scale, 1e-9)
	require.InDeltaSlice(t, []float64{30, 20}, rates(p), 1e-9)
}

func TestAProcessorKeepsTheGuaranteesThatItHolds(t *testing.T) {
	tags := []fairtags.Terms{terms(1, 30, inf), terms(2, 30, inf), terms(3, 0, inf)}
	row := asks(30, 1, 30)
	p := fairtags.Divide(100, tags, []fairtags.Row{row, asks(70, 3, 500)}, 0)
	require.InDeltaSlice(t, []float64{30, 0, 0}, p.Own, 1e-9)
	require.Equal(t, []fairtags.Busy{{Key: 1, Rate: 30}}, p.Held)

	// Another tag comes. Until the row has got more, it gets nothing from the first.
	row = asks(30, 1, 30, 2, 30)
	row.Held = p.Held
	p = fairtags.Divide(100, tags, []fairtags.Row{row, asks(70, 3, 500)}, 0)
	require.InDeltaSlice(t, []float64{30, 0, 0}, p.Own, 1e-9)
	row.Claim = 45
	p = fairtags.Divide(100, tags, []fairtags.Row{row, asks(55, 3, 500)}, 0)
	require.InDeltaSlice(t, []float64{30, 15, 0}, p.Own, 1e-9)
	require.Equal(t, []fairtags.Busy{{Key: 1, Rate: 30}, {Key: 2, Rate: 15}}, p.Held)

	// What a tag does not ask for any more is not kept.
	row = asks(30, 1, 10, 2, 30)
	row.Held = p.Held
	p = fairtags.Divide(100, tags, []fairtags.Row{row}, 0)
	require.InDeltaSlice(t, []float64{10, 20, 0}, p.Own, 1e-9)

	// Nor what it held by other quotas.
	row = asks(40, 1, 30, 2, 30)
	row.Held = []fairtags.Busy{{Key: 1, Rate: 30}, {Key: 99, Rate: 10}}
	tags[0].Reserved = 10
	p = fairtags.Divide(100, tags, []fairtags.Row{row}, 0)
	require.InDeltaSlice(t, []float64{10, 30, 0}, p.Own, 1e-9)
}

func TestAProcessorDividesWhatItHas(t *testing.T) {
	tags := []fairtags.Terms{terms(1, 20, inf), terms(2, 0, inf), {Key: 3, Total: 10, Limiting: inf, Weight: 3}}
	all := []fairtags.Row{asks(40, 1, 20, 2, 60, 3, 60), asks(60, 2, 100)}
	p := fairtags.Divide(100, tags, all, 0)
	require.InDeltaSlice(t, []float64{20, 70, 10}, rates(p), 1e-9)
	require.InDeltaSlice(t, []float64{65, 35}, p.Wants, 1e-9)
	// 20 are guaranteed, and 20 are left for the 45 that its tags should get beside.
	require.InDeltaSlice(t, []float64{20, 20 * 35. / 45, 20 * 10. / 45}, p.Own, 1e-9)

	all[0].Claim = 80 // 15 more than all get: the one without a total takes it
	p = fairtags.Divide(100, tags, all, 0)
	require.InDeltaSlice(t, []float64{20, 50, 10}, p.Own, 1e-9)

	all[0].Claim = 0 // proportions of what it asks for
	p = fairtags.Divide(100, tags, all, 0)
	require.InDeltaSlice(t, []float64{20, 35, 10}, p.Own, 1e-9)

	p = fairtags.Divide(100, tags, all, 1)
	require.InDeltaSlice(t, []float64{0, 60, 0}, p.Own, 1e-9)
	for _, nobody := range []int{-1, 2} {
		p = fairtags.Divide(100, tags, all, nobody)
		require.Equal(t, []float64{0, 0, 0}, p.Own)
		require.Nil(t, p.Held)
	}
}

// What a processor draws ahead of a total is its part of that, however much of the limit it has.
func TestATotalIsDividedAmongProcessors(t *testing.T) {
	rows := []fairtags.Row{asks(50, 1, 5), asks(50, 1, 25)}
	for self, own := range []float64{5, 15} {
		p := fairtags.Divide(100, []fairtags.Terms{terms(1, 0, 20)}, rows, self)
		require.InDeltaSlice(t, []float64{own}, p.Own, 1e-9)
	}
}

// Tags that the terms do not name take their part of a row as well.
func TestOtherTagsTakeTheirPartOfAProcessor(t *testing.T) {
	row := asks(30, 1, 500, 77, 500)
	row.Rest, row.RestReserved = 10, 10
	p := fairtags.Divide(50, []fairtags.Terms{terms(1, 0, inf)}, []fairtags.Row{row, asks(20, 1, 1)}, 0)
	require.InDeltaSlice(t, []float64{20}, rates(p), 1e-9)
	require.InDeltaSlice(t, []float64{20 * 19. / 39}, p.Own, 1e-9)
}
