//go:build numathrottle_mutants

package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// hoard lets six processors draw, one after the other, for callers that cannot go on for a while, and then all go on at
// once. It returns what is wrong with what they use.
func hoard(t *testing.T) string {
	t.Helper()
	p := newTagPool(t, 100_000, acme(0, 200), 6)
	p.everywhere("", 10)
	p.run(5 * time.Second)
	p.used = map[string][]float64{}
	p.stalled = true
	for range 2 {
		for _, m := range p.members {
			m.asks["acme"] = 600
			p.run(1500 * time.Millisecond)
			m.asks["acme"], m.stocks["acme"].Waiting = 0, 0
		}
	}
	p.stalled = false
	p.everywhere("acme", 600)
	p.run(5 * time.Second)
	if worst, most := p.worst("acme", time.Second), p.bound("acme", time.Second); worst > most {
		return fmt.Sprintf("%.0f tokens in a second, allowed: %.0f", worst, most)
	}
	return ""
}

// wiped lets the store forget what a tag has in hand, and returns what is wrong with what is told of that.
func wiped(t *testing.T) string {
	t.Helper()
	k := keep(t, budgeted(limit.ThenRefuse))
	k.asks(5*sec, sharing.TagReport{Tag: "a", Waiting: 50})
	k.gives(5*sec, 5*sec, driver.Drawn{Key: tagname.Key("a"), Tokens: 50})
	k.take(6*sec, 6*sec, sec, &driver.Answer{Frozen: sec, Wall: wallZero + (6 * sec).Microseconds()})
	if d := k.asks(6*sec+sec/2, sharing.TagReport{Tag: "a", Waiting: 1, Back: 3, BackSpent: 3}); d.Back > 0 {
		return fmt.Sprintf("%d tokens are given back that the store knows nothing of", d.Back)
	}
	return ""
}

// retired lets a processor give up what is set aside for a tag, and returns what is wrong with what it gives back and uses after that.
func retired(t *testing.T) string {
	t.Helper()
	k := keep(t, limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: 100, Budgets: []limit.Budget{{Amount: 1000, Per: limit.PeriodDay}}}}})
	d := k.asks(2*sec, sharing.TagReport{Tag: "a", Waiting: 100, Head: 100, Line: 100})
	k.gives(2*sec, 2*sec, driver.Drawn{Key: d.Key, Tokens: 100, From: 2 * sec, Spent: []int64{100}})
	k.giveUp()
	d = k.asks(3*sec, sharing.TagReport{Tag: "a"})
	k.gives(3*sec, 3*sec, driver.Drawn{Key: d.Key, Spent: []int64{100 - d.Back}})
	used := int64(0)
	for _, g := range k.grants(tagBase, 4*sec) {
		used += g.Batch.Tokens
	}
	if d.Back+used != 100 {
		return fmt.Sprintf("of 100 tokens %d are given back, and %d are used", d.Back, used)
	}
	return ""
}

// Each rule of tags on the processor's side is needed by a schedule.
func TestMutantsOfTags(t *testing.T) {
	for rule, schedule := range map[string]func(*testing.T) string{
		"tagbucket-void": hoard, "tagbucket-given-up": hoard, "tagbucket-forgotten": wiped, "tagbucket-retired": retired,
	} {
		t.Run(rule, func(t *testing.T) {
			require.Empty(t, schedule(t), "with all rules")
			mutants.LeaveOut(t, rule)
			caught := schedule(t)
			require.NotEmpty(t, caught, "the schedule does not need the rule")
			t.Log(caught)
		})
	}
}
