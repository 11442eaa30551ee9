package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

func TestSharesGather(t *testing.T) {
	share := func(f float64) driver.Share { return driver.Share(f * float64(driver.Whole)) }
	quarters := []driver.Share{share(0.25), share(0.25), share(0.25), share(0.25)}
	half, most := [2]driver.Share{share(0.5), share(0.5)}, [2]driver.Share{share(0.5), share(0.9)}
	for name, c := range map[string]struct {
		needs  [][2]driver.Share
		floors []driver.Share
		turn   int64
		gets   []float64 // at least; nil: as before
	}{
		"nobody needs more": {needs: [][2]driver.Share{{share(0.2), share(0.25)}, {}, {}, {}}},
		"between the turns": {needs: [][2]driver.Share{half, {}, {}, {}}, turn: 1},
		"one":               {needs: [][2]driver.Share{{}, half, {}, {}}, gets: []float64{0.15, 0.5, 0.15, 0.15}},
		"the largest":       {needs: [][2]driver.Share{{}, most, {}, {}}, gets: []float64{0.01, 0.9, 0.01, 0.01}},
		"all":               {needs: [][2]driver.Share{{}, {driver.Whole, driver.Whole}, {}, {}}, gets: []float64{0, 1, 0, 0}},
		"the first of two":  {needs: [][2]driver.Share{{}, half, {}, half}, gets: []float64{0.15, 0.5, 0.15, 0.15}},
		"the second of two": {needs: [][2]driver.Share{{}, half, {}, half}, turn: 2, gets: []float64{0.15, 0.15, 0.15, 0.5}},
		"floors":            {needs: [][2]driver.Share{half, {}, {}, {}}, floors: []driver.Share{0, share(0.2), 0, 0}, gets: []float64{0.5, 0.2, 0.1, 0.1}},
		"the smallest for floors": {needs: [][2]driver.Share{most, {}, {}, {}}, floors: []driver.Share{share(0.2), share(0.2), 0, 0}, gets: []float64{
			0.7,
			0.2, 0, 0,
		}},
		"too much for floors": {needs: [][2]driver.Share{half, {}, {}, {}}, floors: []driver.Share{0, share(0.2), share(0.2), share(0.2)}},
		"floors above the share": {needs: [][2]driver.Share{half, {}, {}, {}}, floors: []driver.Share{0, share(0.9), 0, 0}, gets: []float64{
			0.5, 0.25, 0.09,
			0.09,
		}},
	} {
		got := gather(quarters, c.needs, c.floors, c.turn)
		if c.gets == nil {
			require.Equal(t, quarters, got, name)
			continue
		}
		sum := driver.Share(0)
		for i := range got {
			require.GreaterOrEqual(t, got[i], share(c.gets[i]), "%s: %d", name, i)
			sum += got[i]
		}
		require.LessOrEqual(t, sum, driver.Whole, name)
		require.Greater(t, sum, driver.Whole-10, name)
	}
	require.Empty(t, gather(nil, nil, nil, 0))
}

// The others read what a processor needs in its note.
func TestANoteTellsWhatDrawsNeed(t *testing.T) {
	needs := [2]driver.Share{driver.Whole / 3, driver.Whole}
	require.Equal(t, needs, NoteIn(Note{needs: needs}.String()).needs)
	require.Empty(t, Note{}.String())
	require.Zero(t, NoteIn("1 g:zzzzzzzzz.-1").needs)
}

// A turn takes four intervals and as long as a full bucket takes to be earned, up to a day.
func TestHowLongATurnTakes(t *testing.T) {
	const interval = time.Second
	for name, c := range map[string]struct {
		limit ceiling.Config
		takes time.Duration
	}{
		"no limit":          {ceiling.Config{Burst: 5, Granted: 1}, 4 * interval},
		"no hard limit":     {ceiling.Config{Limit: ceiling.Rate{Max: 100, Per: time.Second}, Burst: 5}, 4 * interval},
		"half of the limit": {ceiling.Config{Limit: ceiling.Rate{Max: 100, Per: 20 * time.Second}, Burst: 100, Granted: 0.5}, 4*interval + 40*time.Second},
		"at most a day":     {ceiling.Config{Limit: ceiling.Rate{Max: 1, Per: time.Hour}, Burst: 25, Granted: 1}, 4*interval + 24*time.Hour},
	} {
		p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
		p.Answer.Live, p.ceiling.law.Config = 4, c.limit
		p.clock.time = (3 * c.takes).Microseconds()
		require.EqualValues(t, 3, p.gatherTurn(), name)
		p.clock.time--
		require.EqualValues(t, 2, p.gatherTurn(), name)
	}
}

// A processor knows what its own draws need, and of the others what they have told. Its tags pay for what it gives away, beyond what is
// guaranteed.
func TestTagsPayForSharesThatGather(t *testing.T) {
	part := func(f float64) driver.Share { return driver.Share(f * float64(driver.Whole)) }
	for name, c := range map[string]struct {
		own, other driver.Share // that their draws need
		wants      [2]float64
		gets, acme float64
	}{
		"nobody needs more":     {0, 0, [2]float64{0.6, 0.4}, 0.6, 400},
		"the other needs more":  {0, part(0.5), [2]float64{0.6, 0.4}, 0.46875, 200 + 200*0.671875},
		"it has nothing beyond": {0, part(0.7), [2]float64{0.2, 0.6}, 0.2, 400},
		"it needs more":         {part(0.7), 0, [2]float64{0.6, 0.4}, 0.94375, 400},
	} {
		for _, byTags := range []bool{true, false} {
			p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
			p.needs = [2]driver.Share{c.own, c.own}
			p.split.wants = []driver.Share{part(c.wants[0]), part(c.wants[1])}
			p.tags.policy, p.tags.most = *policyOf(acme(200, 0)), 1000
			plan := &p.tags.policy.plan
			plan.Guaranteed, plan.Own = []float64{200, 0}, make([]float64, len(p.tags.policy.terms))
			at := 0
			for p.tags.policy.terms[at].Key != acmeKey() {
				at++
			}
			plan.Own[at], plan.Held = 400, []fairtags.Busy{{Key: acmeKey(), Rate: 200}}
			p.tags.policy.held = plan.Held
			rows := []driver.RosterRow{
				{ID: "a", Note: Note{needs: [2]driver.Share{driver.Whole, driver.Whole}}.String()},
				{ID: "b", Note: Note{needs: [2]driver.Share{c.other, c.other}}.String()},
			}
			p.gather(rows, byTags)
			if !byTags {
				require.InDelta(t, 400, plan.Own[at], 1e-9, "%s: no tag has a say", name)
				continue
			}
			require.InDelta(t, c.gets, p.split.wants[0].Fraction(), 1e-6, name)
			require.InDelta(t, c.acme, plan.Own[at], 1e-3, name)
		}
	}
}
