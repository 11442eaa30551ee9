package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Settings other than the limit that differ are found and named, also where nobody has quotas. Releases before report none.
func TestDifferingSettings(t *testing.T) {
	row := func(id string, l throttle.Limit, cfg ProcessorConfig, quotas *throttle.Quotas) driver.RosterRow {
		cfg.Pool, cfg.ID = "p", id
		p := NewProcessor(cfg, "1")
		terms := sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, l)), Strict: l.Strict}
		if quotas != nil {
			q := quotas.WithDefaults(l.Per)
			terms.Quotas = &q
		}
		p.Configure(terms)
		req := p.Request(time.Second, 1, Observation{})
		require.Less(t, len(req.Note), wire.MaxNoteBytes)
		return driver.RosterRow{ID: id, Note: req.Note, Busy: req.Busy}
	}
	ten := throttle.Limit{Max: 10, Per: time.Second}
	strict := row("c", throttle.Limit{Max: 10, Per: time.Second, Strict: true}, ProcessorConfig{}, nil)
	soft, before := row("a", ten, ProcessorConfig{}, nil), driver.RosterRow{ID: "b", Note: "1 0 10 1000000 0 0"}
	for _, roster := range [][]driver.RosterRow{{soft}, {soft, strict}, {before}} {
		o, _ := overviewOf("p", roster)
		require.Equal(t, len(roster) > 1, o.Strict)
	}
	usual := row("a", ten, ProcessorConfig{}, nil)
	for name, c := range map[string]struct {
		other driver.RosterRow
		want  []string
	}{
		"equal":  {row("b", ten, ProcessorConfig{Lease: driver.DefaultLease, Policy: Fair, OnStoreLoss: Degrade}, nil), nil},
		"before": {driver.RosterRow{ID: "b", Note: "1 0 10 1000000 0 0"}, nil},
		"broken": {driver.RosterRow{ID: "b", Note: "1 0 10 1000000 0 0 s:x"}, nil},
		"limit":  {row("b", throttle.Limit{Max: 20, Per: time.Second}, ProcessorConfig{}, nil), []string{"limit"}},
		"burst":  {row("b", throttle.Limit{Max: 10, Per: time.Second, Burst: 7}, ProcessorConfig{}, nil), []string{"burst"}},
		"policy": {row("b", ten, ProcessorConfig{Policy: Even}, nil), []string{"policy"}},
		"lease":  {row("b", ten, ProcessorConfig{Lease: 5 * time.Second}, nil), []string{"lease"}},
		"loss":   {row("b", ten, ProcessorConfig{OnStoreLoss: Stop}, nil), []string{"onStoreLoss"}},
		"ramp":   {row("b", throttle.Limit{Max: 10, Per: time.Second, Min: 1, RampUpDuration: time.Minute}, ProcessorConfig{}, nil), []string{"ramp"}},
		"quotas": {row("b", ten, ProcessorConfig{}, &throttle.Quotas{}), []string{"quotas"}},
		"strict": {row("b", throttle.Limit{Max: 10, Per: time.Second, Strict: true}, ProcessorConfig{}, nil), []string{"strict"}},
		"adapts": {row("b", throttle.Limit{Max: 10, Per: time.Second, Adaptive: true}, ProcessorConfig{}, nil), []string{"adaptive"}},
		"several": {
			row("b", throttle.Limit{Max: 20, Per: time.Second}, ProcessorConfig{Policy: Even, Lease: driver.MinLease}, nil), []string{
				"limit", "policy",
				"lease",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, roster := range [][]driver.RosterRow{{usual, c.other}, {c.other, usual}} {
				settings := Settings(roster)
				require.ElementsMatch(t, c.want, Differing(settings))
				require.Equal(t, len(c.want) > 0, len(settings) > 1)
				text := Disagreement(settings, false)
				for _, name := range c.want {
					if name != "limit" {
						require.Contains(t, text, name)
					}
				}
			}
		})
	}
}

// A digest tells bursts and policies apart, also one of a program. A processor without one differs from nobody, and counts with the first that
// has one.
func TestWhatADigestTellsApart(t *testing.T) {
	of := func(burst int64, p Policy) digest {
		return digestOf(&ProcessorConfig{Policy: p}, &ceiling.Config{Burst: burst}, false)
	}
	second := map[byte]bool{}
	for burst := range int64(20) {
		second[of(burst, Fair)[1]] = true
	}
	require.Greater(t, len(second), 10)
	fair, even, own := of(1, Fair), of(1, Even), of(1, func([]driver.RosterRow) []driver.Share { return nil })
	require.NotEqual(t, fair, even)
	require.NotContains(t, []digest{fair, even}, own)
	require.Empty(t, fair.differences("", true, nil))
	require.Empty(t, digest("").differences(fair, true, nil))
	require.Equal(t, []string{"policy"}, fair.differences(own, true, nil))

	note := func(d digest) string { return "1 0 600 60000000 0 0 s:" + string(d) }
	list := Settings(rowsOf("1 0 600 60000000 0 0", note(fair), note(even), note(fair)))
	require.Len(t, list, 2)
	for i := range list {
		require.Equal(t, map[digest][]string{fair: {"a", "b", "d"}, even: {"c"}}[list[i].digest], list[i].IDs)
	}
}
