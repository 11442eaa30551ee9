package protocol

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// Which tags are slow is told with their names.
func TestBusyTellsWhichTagsAreSlow(t *testing.T) {
	var tags []busyTag
	for i := range uint64(maxBusyTags + 10) {
		tags = append(tags, busyTag{key: 100 + i, rate: 10, slow: i%5 == 0})
	}
	r, ok := unpackBusy(packBusy(1, 2, 3, tags))
	require.True(t, ok)
	require.Len(t, r.tags, maxBusyTags)
	for i, b := range r.tags {
		require.Equal(t, (b.Key-100)%5 == 0, r.slow[i], b.Key)
	}
	require.Equal(t, uint64(155), r.tags[11].Key, "slow ones come before others")
}

// slowRow is a live processor that tells of acme alone.
func slowRow(id string, rate float64, slow bool) driver.RosterRow {
	return driver.RosterRow{ID: id, Claim: driver.Whole / 4, Busy: packBusy(1, 1, 0, []busyTag{{key: acmeKey(), rate: rate, slow: slow}})}
}

// A tag is limited to the sum of what the service takes of it where it is slow wherever it asks for something.
func TestASlowTagIsLimitedToTheSum(t *testing.T) {
	own := []busyTag{{key: acmeKey(), rate: 40, slow: true}}
	target := func(own []busyTag, late time.Duration, others ...driver.RosterRow) (by string, rate float64) {
		p := policyOf(acme(0, 400))
		roster := append([]driver.RosterRow{slowRow("a", 0, false)}, others...)
		p.receive(0, "a", roster)
		p.divide(late, sec, 1000, roster, 0, own)
		at := p.plan.Targets[p.index[acmeKey()]]
		return at.By, at.Rate
	}
	by, rate := target(own, 0, slowRow("b", 60, true), slowRow("c", 0, false))
	require.Equal(t, "limiting", by)
	require.InDelta(t, 100, rate, 0.1)
	by, rate = target(own, 0, slowRow("b", 60, true), slowRow("c", 5, false))
	require.Equal(t, "demand", by, "at c it could have more")
	require.InDelta(t, 105, rate, 0.1)
	by, _ = target([]busyTag{{key: acmeKey(), rate: 40}}, 0, slowRow("b", 60, true))
	require.Equal(t, "demand", by)
	by, rate = target(own, 3*sec, slowRow("c", 5, false))
	require.Equal(t, "limiting", by, "c is silent")
	require.InDelta(t, 40, rate, 0.1)
}

// A processor asks neither the others nor the tag bucket for more of a tag than the service takes of it.
func TestASlowTagAsksForWhatTheServiceTakes(t *testing.T) {
	k, p := keep(t, one(1000)), policyOf(one(1000))
	d := k.asks(10*sec, sharing.TagReport{Tag: "a", Used: 500, Waiting: 300, Limiting: 50})
	require.EqualValues(t, 63, d.Ask, "for an interval and a quarter")
	reported := p.busy(&k.tagBook)
	require.Equal(t, []busyTag{{key: busyKey(tagname.Key("a")), rate: 50, used: 50, limited: true, slow: true}}, reported)
	require.Greater(t, k.accounts[0].demand, 79., "what it asks for is still known")

	k.gives(10*sec, 10*sec)
	k.asks(11*sec, sharing.TagReport{Tag: "a", Used: 520, Limiting: 200})
	reported = p.busy(&k.tagBook)
	require.False(t, reported[0].slow, "it asks for less than the service takes")
	require.Less(t, reported[0].rate, 100.)
	k.gives(11*sec, 11*sec)
	k.asks(11*sec+sec/2, sharing.TagReport{Tag: "a", Used: 530, Limiting: k.accounts[0].demand * 1.5, Held: true})
	require.True(t, p.busy(&k.tagBook)[0].slow, "it is held back, and what the service takes is told ahead")
	k.gives(11*sec+sec/2, 11*sec+sec/2)
	k.asks(12*sec, sharing.TagReport{Tag: "b", Waiting: 1})
	require.Zero(t, k.accounts[0].Limiting, "whom the limiter does not name")
}

// What is reserved for a slow tag, and not told by others, a processor asks for; its part of that is the floor of the limiter.
func TestASlowTagAsksForWhatIsReserved(t *testing.T) {
	k, p := keep(t, acme(120, 0)), policyOf(acme(120, 0))
	asks := func(elsewhere float64, demand int64) float64 {
		*k = *keep(t, acme(120, 0))
		k.report(10*sec, sec, false, []sharing.TagReport{{Tag: "acme", Waiting: 10 * demand, Limiting: 20}})
		p.elsewhere = make([]float64, len(p.terms))
		p.elsewhere[p.index[acmeKey()]] = elsewhere
		return p.busy(&k.tagBook)[0].rate
	}
	for _, c := range []struct {
		elsewhere float64
		demand    int64
		want      float64
	}{
		{0, 500, 120}, {70, 500, 50}, {110, 500, 20}, {math.MaxInt32, 500, 20}, {0, 60, 60},
	} {
		require.InDelta(t, c.want, asks(c.elsewhere, c.demand), 1e-9, c)
	}
	own := []busyTag{{key: acmeKey(), rate: asks(70, 500), slow: true}}
	roster := []driver.RosterRow{{ID: "a", Claim: driver.Whole / 2}, slowRow("b", 70, true)}
	p.divide(0, sec, 1000, roster, 0, own)
	p.assign(&k.tagBook)
	require.InDelta(t, 50, k.grants(tagBase, 10*sec)[0].Reserved, 0.1)
	require.InDelta(t, 70, p.elsewhere[p.index[acmeKey()]], 0.1)
}
