package throttle

import (
	"github.com/numaproj-contrib/numathrottle/internal/engine/tagbucket"
)

// A tagBucketOrigin records where the tokens of a permit came from.
type tagBucketOrigin = *tagbucket.Draw

// A tagPage settles the permits of one tagView that have positions in one page and tokens from the same batches. So no permit needs an
// allocation of its own.
type tagPage struct {
	page  *page
	tags  []*tag
	draws []tagBucketOrigin
	room  [1]tagBucketOrigin
}

func (p *tagPage) settle(pos int64, n, used int) {
	if !p.page.once(pos) || used == n {
		return
	}
	used = min(max(used, 0), maxTokens)
	t := p.page.t
	unbooked := t.correct(pos, n, used)
	name, dropped := "", unbooked
	for i, g := range p.tags {
		if over := g.settled(p.draws[i], n, used, unbooked); over > dropped {
			name, dropped = g.name, over
		}
	}
	t.noteDropped(name, dropped)
}

func (p *tagPage) report(pos int64, n int, o Outcome) {
	p.tags[0].set.report(n, o, start{pos, never}, p.tags)
}

// same reports whether the page settles permits drawn from there.
func (p *tagPage) same(page *page, draws []tagBucketOrigin) bool {
	if p == nil || p.page != page {
		return false
	}
	for i, d := range draws {
		if p.draws[i] != d {
			return false
		}
	}
	return true
}

// settled books the difference between drawn and used tokens, and returns how many tokens of debt it does not book. One settlement makes no
// more debt than the limit itself may owe, also where only budgets count. Tokens that the limit drops do not count as used; unbooked is how many
// it has dropped already.
func (g *tag) settled(d tagBucketOrigin, n, used, unbooked int) (dropped int) {
	if n == used {
		return 0
	}
	used = min(used, maxTokens)
	more := used - n
	if most := n + g.t.limit.owable(); used > most {
		used, dropped = most, used-most
	}
	more -= max(dropped, unbooked)
	g.mu.Lock()
	if g.gone.Load() {
		g.mu.Unlock()
		is := g.set.revive(g)
		if is != g {
			d = &tagbucket.Draw{} // the unused tokens are of a time that is over
		}
		g = is
		g.mu.Lock()
	}
	defer g.mu.Unlock()
	g.last = g.t.gate.Now()
	now := g.t.gate.Now()
	if used > n {
		dropped += int(g.tagBucket.Owe(now, int64(used-n)))
	} else {
		g.tagBucket.Return(now, d, int64(n-used))
	}
	if g.used.Add(int64(more)); used == 0 {
		g.calls--
	}
	g.pace.spend(now, more)
	g.changed(now)
	return dropped
}

// dropped counts what the tag drops beyond of: n tokens in all.
func (g *tag) dropped(n int, of drop) drop {
	g.t.noteDropped(g.name, n-of.most)
	of.most = max(of.most, n)
	return of
}

func (g tagBucketSource) book(n int, of drop) drop {
	if n > 0 {
		g.mu.Lock()
		g.calls++
		g.mu.Unlock()
		return g.dropped(g.settled(&tagbucket.Draw{}, 0, n, of.own), of)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.t.gate.Now()
	g.used.Add(int64(n))
	g.pace.spend(now, n)
	g.tagBucket.Repay(now, int64(-n))
	g.changed(now)
	return of
}
