package fairtags_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
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

// Each case of testdata/divide.txt has the limit, its tags, and after each "|" a row with the rates of its keys. After "=>" are the rate of
// each tag with its cause, and the part that each row wants.
func TestTheLimitIsDividedAmongTagsFirst(t *testing.T) {
	text, err := os.ReadFile("testdata/divide.txt")
	require.NoError(t, err)
	for c := range strings.SplitSeq(strings.TrimPrefix(string(text), "# "), "\n# ") {
		name, line, _ := strings.Cut(c, "\n")
		t.Run(name, func(t *testing.T) {
			given, want, _ := strings.Cut(line, "=>")
			limit, given, _ := strings.Cut(given, ":")
			parts := strings.Split(given, "|")
			var tags []fairtags.Terms
			for tag := range strings.SplitSeq(parts[0], ",") {
				key, settings, _ := strings.Cut(strings.TrimSpace(tag), " ")
				term := terms(uint64(number(t, key)), 0, inf)
				class := 0.
				fill(t, settings, map[string]*float64{
					"reserved": &term.Reserved, "total": &term.Total, "limiting": &term.Limiting, "weight": &term.Weight, "class": &class,
				})
				term.Class = int(class)
				tags = append(tags, term)
			}
			rows := []fairtags.Row{}
			for _, part := range parts[1:] {
				var row fairtags.Row
				silent := 0.
				busy := fill(t, part, map[string]*float64{
					"claim": &row.Claim, "silent": &silent, "rest": &row.Rest, "restreserved": &row.RestReserved,
				})
				for _, b := range busy {
					key, rate, _ := strings.Cut(b, ":")
					row.Busy = append(row.Busy, fairtags.Busy{Key: uint64(number(t, key)), Rate: number(t, rate)})
				}
				row.Silent = silent > 0
				rows = append(rows, row)
			}
			p := fairtags.Divide(number(t, limit), tags, rows, -1)
			var got []string
			for _, target := range p.Targets {
				got = append(got, fmt.Sprintf("%.9g %s", target.Rate, target.By))
			}
			require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(strings.Join(got, ", ")+" | "+strings.Trim(fmt.Sprintf("%.9g", p.Wants), "[]")))
		})
	}
}

// fill sets what words say, as name=1, and returns the other words.
func fill(t *testing.T, words string, to map[string]*float64) (others []string) {
	t.Helper()
	for word := range strings.FieldsSeq(words) {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			others = append(others, word)
			continue
		}
		require.Contains(t, to, name)
		*to[name] = number(t, value)
	}
	return others
}

func number(t *testing.T, word string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
	require.NoError(t, err)
	return f
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

// What is guaranteed to tags is divided by their demand, and is the claim of a silent row.
func TestWhatIsGuaranteedToRows(t *testing.T) {
	tags := []fairtags.Terms{terms(1, 30, inf), terms(2, 20, inf), terms(3, 0, inf)}
	silent := asks(7, 1, 100)
	silent.Silent = true
	rows := []fairtags.Row{asks(0, 1, 5, 2, 4, 3, 500), asks(0, 1, 100), asks(0, 3, 500), silent}
	p := fairtags.Divide(100, tags, rows, 0)
	require.InDeltaSlice(t, []float64{9, 25, 0, 7}, p.Guaranteed, 1e-9)
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
