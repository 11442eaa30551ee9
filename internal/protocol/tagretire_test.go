package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A processor that is about to leave gives up its tags' tokens if the store counts them, and goes on until it has told all that budgets
// get back, or count. A total gets nothing back.
func TestWhoRetires(t *testing.T) {
	owed := func(a *tagAccount) { a.Owed = 1 }
	for name, c := range map[string]struct {
		account     func(a *tagAccount)
		but         func(p *Processor)
		gives, more bool
	}{
		"nothing is left":             {account: func(*tagAccount) {}, gives: true},
		"given back":                  {account: func(a *tagAccount) { a.BackSpent = 1 }, gives: true, more: true},
		"owed":                        {account: owed, gives: true, more: true},
		"granted without the store":   {account: func(a *tagAccount) { a.budgets[0].own = 1 }, gives: true, more: true},
		"owed to a total":             {account: func(a *tagAccount) { a.Owed, a.quota.Budgets = 1, nil }, gives: true},
		"it has no quotas":            {account: owed, but: func(p *Processor) { p.tags.on = false }},
		"they are for slots":          {account: owed, but: func(p *Processor) { p.tags.slots.most = 1 }},
		"the store does not count":    {account: owed, but: func(p *Processor) { p.tags.policy.capable = false }},
		"another one is in its place": {account: owed, but: func(p *Processor) { p.state = StateReplaced }},
	} {
		t.Run(name, func(t *testing.T) {
			q := limit.Quotas{Tags: map[string]limit.Quota{"a": {Total: 5, Budgets: []limit.Budget{daily}}}}.WithDefaults(sec)
			p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
			p.Configure(sharing.Terms{Ceiling: hook.Ceiling(limitOf(t, thousandOf(1000))), Quotas: &q})
			p.tags.policy.capable = true
			a := tagAccount{quota: q.Tags["a"]}
			a.Tag = "a"
			c.account(&a)
			p.tags.book.accounts = []tagAccount{a}
			require.Equal(t, len(a.quota.Budgets) > 0, p.DrawsBudgets())
			if c.but != nil {
				c.but(p)
			}
			asked := 0
			more := p.Retire(sec, func(time.Duration) []sharing.TagReport { asked++; return nil })
			require.Equal(t, c.more, more)
			require.Equal(t, c.gives, asked == 1)
			require.Equal(t, c.gives, p.tags.retired)
		})
	}
}
