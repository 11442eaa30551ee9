package consensus_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// team starts callers of a team at a pod, each with another key. They draw as fast as they can, and their calls count for the team.
func (p *matrixPool) team(th *throttle.Throttle, team string, keys int) {
	for i := range keys {
		key := fmt.Sprint(team, "/key-", i)
		go func() {
			for {
				l, _ := hook.ForLevels(th, team, key).(throttle.Limiter)
				if _, err := l.Acquire(p.ctx, 1); err != nil {
					return
				}
				p.note(team, 1)
				p.note(key, 1)
			}
		}()
	}
}

// TestKeysAreNoDemandOfTheirOwn: a team whose calls come under many keys, at other pods than those of another team, gets no more of the limit
// than it would without keys: neither its weight nor its reserved rate counts again for each of them.
func TestKeysAreNoDemandOfTheirOwn(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	for name, c := range map[string]struct {
		tags       map[string]throttle.Quota
		match      []limit.QuotaPattern
		keys       int
		many, each float64 // what the team with keys gets, and the other
		short      bool    // the totals of its keys are short, too: tokens of one lapse while a call waits for the other
	}{
		"equal": {
			map[string]throttle.Quota{"many": {}, "one": {}}, []limit.QuotaPattern{{Tag: "many/*", Quota: throttle.Quota{Total: 50}}}, 1000, 200, 200, false,
		},
		"by name": {
			map[string]throttle.Quota{"many": {}, "one": {}, "many/key-0": {Total: 390}}, nil, 50, 200, 200, false,
		},
		"reserved": {
			map[string]throttle.Quota{"many": {Reserved: 100}, "one": {Reserved: 300}}, []limit.QuotaPattern{{Tag: "*/*"}}, 1000, 100, 300, false,
		},
		"total": {
			map[string]throttle.Quota{"many": {Total: 60}, "one": {}},
			[]limit.QuotaPattern{{Tag: "many/*", Quota: throttle.Quota{Total: 5}}},
			30, 60, 340, true,
		},
		"total, many keys": {
			map[string]throttle.Quota{"many": {Total: 60}, "one": {}}, []limit.QuotaPattern{{Tag: "many/*", Quota: throttle.Quota{}}}, 1000, 60, 340, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newMatrixPool(t, 2, throttle.Limit{Max: 400}, throttle.Quotas{Tags: c.tags, Match: c.match})
				p.team(p.pods[0], "many", c.keys)
				p.team(p.pods[1], "one", 4)
				time.Sleep(20 * time.Second)
				got := make(chan float64, 1)
				go func() { got <- p.over(20*time.Second, "one") }()
				many := p.over(20*time.Second, "many")
				if c.short { // 51.8 to 60.2 in 1,500 windows
					require.GreaterOrEqual(t, many, 0.8*c.many)
					require.LessOrEqual(t, many, 1.05*c.many+2)
				} else {
					require.InDelta(t, c.many, many, 0.05*c.many+2)
				}
				require.InDelta(t, c.each, <-got, 0.05*c.each+2)
				if c.tags["many"].Total > 0 {
					p.within("many")
				}
			})
		})
	}
}

// TestTotalsOfBothLevelsHoldOverAPool: a key that comes through all pods gets its total, and the others of its team the rest of the team's.
func TestTotalsOfBothLevelsHoldOverAPool(t *testing.T) {
	testkit.SkipRace(t, "it measures")
	synctest.Test(t, func(t *testing.T) {
		p := newMatrixPool(t, 3, throttle.Limit{Max: 600}, throttle.Quotas{
			Tags:  map[string]throttle.Quota{"team": {Total: 90}, "team/key-0": {Total: 12}},
			Match: []limit.QuotaPattern{{Tag: "team/*", Quota: throttle.Quota{Total: 30}}},
		})
		for i := range 4 {
			p.of(fmt.Sprint("team/key-", i+1)).rate = 30
		}
		for _, th := range p.pods {
			for range 4 {
				p.team(th, "team", 5)
			}
		}
		time.Sleep(20 * time.Second)
		got := make(chan float64, 1)
		// A key gets 9 of 12 in the long run. Over 20 s it had 5.1 to 12, over 60 s 7.6 to 10.3, in 450 runs each.
		go func() { got <- p.over(60*time.Second, "team/key-0") }()
		require.GreaterOrEqual(t, p.over(60*time.Second, "team"), 0.5*90) // tokens of one total lapse while a call waits for the other
		require.GreaterOrEqual(t, <-got, 0.5*12)
		p.within("team")
		for i := range 5 {
			p.within(fmt.Sprint("team/key-", i))
		}
	})
}
