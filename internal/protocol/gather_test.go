package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

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
