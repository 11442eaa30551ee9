package fairtags_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A pool is a random input of Divide.
type pool struct {
	limit float64
	tags  []fairtags.Terms
	rows  []fairtags.Row
}

// draw makes a small pool, in which every branch of the policy is met often. The tag 0 is among the terms of most, and
// some keys of the rows are of no tag.
func draw(r *rand.Rand) pool {
	some := func(most float64) float64 { return float64(r.IntN(21)) / 20 * most }
	p := pool{limit: some(100)}
	for key := range uint64(1 + r.IntN(6)) {
		t := fairtags.Terms{Key: key + uint64(r.IntN(5)/4), Total: inf, Limiting: inf, Weight: float64(1 + r.IntN(4)), Class: r.IntN(3)}
		if slices.ContainsFunc(p.tags, func(o fairtags.Terms) bool { return o.Key == t.Key }) {
			continue
		}
		if r.IntN(2) == 0 {
			t.Reserved = some(60)
		}
		if r.IntN(3) == 0 {
			t.Total = t.Reserved + some(60)
		}
		if r.IntN(5) == 0 {
			t.Limiting = some(60)
		}
		p.tags = append(p.tags, t)
	}
	for range 1 + r.IntN(5) {
		row := fairtags.Row{Claim: some(p.limit / 2), Silent: r.IntN(8) == 0}
		for range r.IntN(6) {
			row.Busy = append(row.Busy, fairtags.Busy{Key: uint64(r.IntN(8)), Rate: some(80)})
		}
		if r.IntN(4) == 0 {
			row.Rest = some(40)
			row.RestReserved = row.Rest * some(1)
		}
		if r.IntN(3) == 0 {
			row.Held = append(row.Held, fairtags.Busy{Key: uint64(r.IntN(6)), Rate: some(40)})
		}
		p.rows = append(p.rows, row)
	}
	return p
}

func (p pool) divide(self int) fairtags.Plan { return fairtags.Divide(p.limit, p.tags, p.rows, self) }

// each runs a check on many pools, the same ones in each run.
func each(t *testing.T, check func(r *rand.Rand, p pool)) {
	t.Helper()
	testkit.SkipRace(t, "it has one goroutine, and TestScenarios runs with it")
	r := rand.New(rand.NewPCG(1, 2))
	for range testkit.Fewer(100_000) {
		check(r, draw(r))
	}
}

func sum(of []float64) (sum float64) {
	for _, x := range of {
		sum += x
	}
	return sum
}

const near = 1e-6

// require of testify takes most of the time of 100,000 cases: it is called when something is wrong.
func verify(t *testing.T, right bool, says string, p pool, plan any) {
	t.Helper()
	if !right {
		require.FailNow(t, says, "%+v\n%+v", p, plan)
	}
}

func TestNoPlanGivesOutMoreThanTheLimit(t *testing.T) {
	each(t, func(r *rand.Rand, p pool) {
		self := r.IntN(len(p.rows))
		plan := p.divide(self)
		has := p.rows[self].Claim
		if has == 0 {
			has = plan.Wants[self]
		}
		verify(t, sum(plan.Wants) <= p.limit+near, "wants", p, plan)
		verify(t, sum(rates(plan)) <= p.limit+near, "targets", p, plan)
		verify(t, sum(plan.Own) <= has+near, "own", p, plan)
		verify(t, min(slices.Min(plan.Wants), slices.Min(rates(plan)), slices.Min(plan.Own)) >= 0, "below 0", p, plan)
		for i, target := range plan.Targets {
			verify(t, target.Rate <= min(target.Demand, target.Bound, max(p.tags[i].Total, 0))+near, "a tag gets more than it may", p, plan)
		}
	})
}

func TestNothingThatIsAskedForIsLeft(t *testing.T) {
	each(t, func(_ *rand.Rand, p pool) {
		if !slices.ContainsFunc(p.rows, func(r fairtags.Row) bool { return !r.Silent }) {
			return
		}
		plan := p.divide(0)
		claimed := 0.0
		for _, row := range p.rows {
			if row.Silent {
				claimed += row.Claim
			}
		}
		verify(t, math.Abs(sum(plan.Wants)-max(p.limit, claimed)) <= near || claimed > p.limit, "wants do not make the limit", p, plan)
		for i, target := range plan.Targets {
			held := target.By == fairtags.ByLimit || target.By == fairtags.ByClass || target.By == fairtags.ByReserved
			reserved := target.By == fairtags.ByReserved && p.tags[i].Reserved > p.tags[i].Limiting
			full := sum(rates(plan)) + p.rest() + claimed + p.floors()
			if p.named(0) && held && !reserved {
				verify(t, full >= p.limit-near, "a tag lacks tokens that nobody has", p, plan)
			}
		}
	})
}

// rest is what is guaranteed for tags that did not fit into Busy: more than the limit allows at times.
func (p pool) rest() (rest float64) {
	for _, row := range p.rows {
		if !row.Silent {
			rest += min(row.RestReserved, row.Rest)
		}
	}
	return rest
}

// floors is what idle rows keep beyond their demand: half a percent in all.
func (p pool) floors() (floors float64) {
	live := slices.DeleteFunc(slices.Clone(p.rows), func(r fairtags.Row) bool { return r.Silent })
	for _, row := range live {
		asked := row.Rest
		for _, b := range row.Busy {
			asked += b.Rate
		}
		floors += max(p.limit/200/float64(len(live))-asked, 0)
	}
	return floors
}

func (p pool) named(key uint64) bool {
	return slices.ContainsFunc(p.tags, func(t fairtags.Terms) bool { return t.Key == key })
}

func TestReservedTokensAreThereWhenTheyAreAskedFor(t *testing.T) {
	fits := 0
	each(t, func(_ *rand.Rand, p pool) {
		plan := p.divide(0)
		if plan.Scale < 1 {
			return
		}
		fits++
		for i, target := range plan.Targets {
			verify(t, target.Rate >= min(target.Demand, p.tags[i].Reserved, p.tags[i].Total)-near, "less than is reserved", p, plan)
		}
	})
	require.Greater(t, fits, testkit.Fewer(100_000)/3)
}

func TestTheOrderOfTagsAndRowsIsIrrelevant(t *testing.T) {
	each(t, func(r *rand.Rand, p pool) {
		self := r.IntN(len(p.rows))
		plan := p.divide(self)
		tags, rows := r.Perm(len(p.tags)), r.Perm(len(p.rows))
		var mixed pool
		mixed.limit = p.limit
		for _, i := range tags {
			mixed.tags = append(mixed.tags, p.tags[i])
		}
		for _, i := range rows {
			row := p.rows[i]
			row.Busy = slices.Clone(row.Busy)
			r.Shuffle(len(row.Busy), func(i, j int) { row.Busy[i], row.Busy[j] = row.Busy[j], row.Busy[i] })
			mixed.rows = append(mixed.rows, row)
		}
		again := mixed.divide(slices.Index(rows, self))
		for to, from := range tags {
			verify(t, math.Abs(again.Targets[to].Rate-plan.Targets[from].Rate) <= near, "target", p, plan)
			verify(t, math.Abs(again.Own[to]-plan.Own[from]) <= near, "own", p, plan)
		}
		for to, from := range rows {
			verify(t, math.Abs(again.Wants[to]-plan.Wants[from]) <= near, "want", p, plan)
		}
	})
}

// Keys are names and nothing more: 0 alone says something.
func TestNamesAreIrrelevant(t *testing.T) {
	each(t, func(r *rand.Rand, p pool) {
		self := r.IntN(len(p.rows))
		plan := p.divide(self)
		add := 1 + r.Uint64N(1<<60)
		rename := func(busy []fairtags.Busy) []fairtags.Busy {
			busy = slices.Clone(busy)
			for i := range busy {
				if busy[i].Key != 0 {
					busy[i].Key = add * busy[i].Key
				}
			}
			return busy
		}
		named := pool{limit: p.limit, tags: slices.Clone(p.tags), rows: slices.Clone(p.rows)}
		for i := range named.tags {
			named.tags[i].Key *= add
		}
		for i := range named.rows {
			named.rows[i].Busy, named.rows[i].Held = rename(named.rows[i].Busy), rename(named.rows[i].Held)
		}
		again := named.divide(self)
		verify(t, slices.Equal(rates(again), rates(plan)) && slices.Equal(again.Own, plan.Own) && slices.Equal(again.Wants, plan.Wants), "names", p, plan)
	})
}

func TestWhoAsksForMoreNeverGetsLess(t *testing.T) {
	each(t, func(r *rand.Rand, p pool) {
		before := p.divide(0)
		tag, row := r.IntN(len(p.tags)), r.IntN(len(p.rows))
		key := p.tags[tag].Key
		p.rows[row].Busy = append(slices.Clone(p.rows[row].Busy), fairtags.Busy{Key: key, Rate: 1 + 50*r.Float64()})
		after := p.divide(0)
		verify(t, after.Targets[tag].Rate >= before.Targets[tag].Rate-near, "monotone", p, []fairtags.Plan{before, after})
	})
}

func TestAPlanHasNoScale(t *testing.T) {
	each(t, func(r *rand.Rand, p pool) {
		self, by := r.IntN(len(p.rows)), 1e-3*math.Pow(10, float64(r.IntN(10)))
		plan := p.divide(self)
		scale := func(busy []fairtags.Busy) (scaled []fairtags.Busy) {
			for _, b := range busy {
				scaled = append(scaled, fairtags.Busy{Key: b.Key, Rate: b.Rate * by})
			}
			return scaled
		}
		large := pool{limit: p.limit * by}
		for _, t := range p.tags {
			t.Reserved, t.Total, t.Limiting = t.Reserved*by, t.Total*by, t.Limiting*by
			large.tags = append(large.tags, t)
		}
		for _, row := range p.rows {
			row.Claim, row.Rest, row.RestReserved = row.Claim*by, row.Rest*by, row.RestReserved*by
			row.Busy, row.Held = scale(row.Busy), scale(row.Held)
			large.rows = append(large.rows, row)
		}
		again := large.divide(self)
		for i := range plan.Targets {
			verify(t, math.Abs(again.Targets[i].Rate/by-plan.Targets[i].Rate) <= near, "target", p, plan)
			verify(t, math.Abs(again.Own[i]/by-plan.Own[i]) <= near, "own", p, plan)
		}
		for i := range plan.Wants {
			verify(t, math.Abs(again.Wants[i]/by-plan.Wants[i]) <= near, "want", p, plan)
		}
	})
}

// Nothing crashes Divide, and nothing makes it give out more than the limit.
func FuzzDivide(f *testing.F) {
	f.Add(100.0, 10.0, 20.0, 30.0, 1.0, 0, 50.0, 7.0, uint64(1))
	f.Add(math.NaN(), math.Inf(1), math.Inf(-1), -1.0, 0.0, -1, math.NaN(), math.Inf(1), uint64(0))
	f.Add(math.MaxFloat64, math.MaxFloat64, 5e-324, inf, 5e-324, math.MaxInt, math.MaxFloat64, 5e-324, uint64(2))
	f.Fuzz(func(t *testing.T, limit, reserved, total, limiting, weight float64, class int, asked, claim float64, key uint64) {
		tags := []fairtags.Terms{{Key: 1, Reserved: reserved, Total: total, Limiting: limiting, Weight: weight, Class: class}, terms(0, asked, total)}
		rows := []fairtags.Row{
			{Claim: claim, Busy: []fairtags.Busy{{Key: key, Rate: asked}, {Key: 1, Rate: reserved}}, Rest: total, RestReserved: asked},
			{Claim: asked, Silent: class%2 == 0, Busy: []fairtags.Busy{{Key: 1, Rate: claim}}, Held: []fairtags.Busy{{Key: key, Rate: limiting}}},
		}
		plan := fairtags.Divide(limit, tags, rows, 0)
		bound := limit
		if math.IsNaN(bound) {
			bound = 0
		}
		bound = max(bound, 0) * (1 + near)
		for _, x := range slices.Concat(plan.Wants, rates(plan), plan.Own) {
			require.False(t, math.IsNaN(x) || x < 0, "%v", plan)
		}
		require.LessOrEqual(t, sum(plan.Wants), bound)
		require.LessOrEqual(t, sum(rates(plan)), bound)
	})
}

func BenchmarkDivide(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 1, 999)
	p := pool{limit: 10_000}
	for key := range uint64(1000) {
		p.tags = append(p.tags, fairtags.Terms{Key: key, Reserved: float64(key % 7), Total: 100, Limiting: inf, Weight: 1, Class: int(key % 2)})
	}
	for range 100 {
		row := fairtags.Row{Claim: 100}
		for range 48 {
			row.Busy = append(row.Busy, fairtags.Busy{Key: zipf.Uint64(), Rate: 10 * r.Float64()})
		}
		p.rows = append(p.rows, row)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.divide(50)
	}
}
