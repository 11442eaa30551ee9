package protocol

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// Retire makes the next requests give up all tokens of tags, including those that report returns, and draw none. It returns true while the
// store is still to learn of tokens that were given up, or used without it. report is called at most once.
func (p *Processor) Retire(now time.Duration, report func(keep time.Duration) []sharing.TagReport) bool {
	t := &p.tags
	if !t.on || t.slots.most > 0 || !t.policy.capable || p.state == StateReplaced {
		return false
	}
	t.retired = true
	p.reportTags(now, report(p.TagKeep()))
	t.book.giveUp()
	return slices.ContainsFunc(t.book.accounts, func(a tagAccount) bool {
		return len(a.quota.Budgets) > 0 && (a.BackSpent > 0 || a.Owed > 0 || a.unreported() > 0)
	})
}

// giveUp gives up the tokens that the limiter does not have yet.
func (b *tagBook) giveUp() {
	b.detach()
	for i := range b.accounts {
		a := &b.accounts[i]
		for _, l := range append(slices.Clip(a.reserved), a.batch) {
			a.gives(l.tokens, l.window)
		}
		a.batch, a.reserved = tagBatch{}, nil
	}
}

// DrawsBudgets reports whether the answer to a request may bring tokens of budgets.
func (p *Processor) DrawsBudgets() bool {
	return slices.ContainsFunc(p.tags.book.accounts, func(a tagAccount) bool { return len(a.quota.Budgets) > 0 })
}
