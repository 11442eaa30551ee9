package throttle

import "github.com/numaproj-contrib/numathrottle/internal/stock"

// A stockOrigin tells where the tokens of a permit came from.
type stockOrigin = *stock.Draw

// A tagPage settles the permits of one tagView whose positions stand in one page, and whose tokens came from the same lots. So no
// permit needs an allocation of its own.
type tagPage struct {
	page  *page
	tags  []*tag
	draws []stockOrigin
	room  [1]stockOrigin
}

func (p *tagPage) settle(pos int64, n, used int) {
	if !p.page.once(pos) || used == n {
		return
	}
	used = min(used, maxTokens)
	p.page.t.correct(pos, n, used)
	for i, g := range p.tags {
		g.settled(p.draws[i], n, used)
	}
}

func (p *tagPage) report(pos int64, n int, o Outcome) { p.page.reportFor(pos, n, o, p.tags) }

// same tells whether the page settles what was drawn from there.
func (p *tagPage) same(page *page, draws []stockOrigin) bool {
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

// settled books the difference between what was drawn and what was used.
func (g *tag) settled(d stockOrigin, n, used int) {
	if n == used {
		return
	}
	used = min(used, maxTokens)
	g.mu.Lock()
	if g.gone.Load() {
		g.mu.Unlock()
		is := g.t.tags.revive(g)
		if is != g {
			d = &stock.Draw{} // what was not used is of a time that is over
		}
		g = is
		g.mu.Lock()
	}
	defer g.mu.Unlock()
	g.last = g.t.gate.Now()
	now := g.t.gate.Now()
	if g.used.Add(int64(used - n)); used == 0 {
		g.calls--
	}
	g.pace.spend(now, used-n)
	if used > n {
		g.stock.Owe(now, int64(used-n))
	} else {
		g.stock.Return(now, d, int64(n-used))
	}
	g.changed(now)
}
