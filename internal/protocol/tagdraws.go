package protocol

import (
	"cmp"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A tagDraw is the draw of a request for one tag.
type tagDraw struct {
	driver.Draw

	tag     string
	window  int64
	covers  int64                  // tokens wanted by the callers it is for, if it is reserved
	budgets [wire.MaxBudgets]int   // the index of each budget of the draw
	own     [wire.MaxBudgets]int64 // granted here of each, as reported
	known   bool                   // some spending is known
	ownOnly bool                   // it reports the tokens granted here, and nothing else
}

// asks reports whether the store has anything to do for the tag.
func (d *tagDraw) asks() bool { return d.Ask > 0 || d.Back > 0 || d.Owed > 0 }

// draws returns the draws of the next request. Tags with their own quota come first, however many names of patterns wait; among both, tags
// with waiting callers come first. Tags left out take their turn in the next request. With seen, it also reports the known spending of tags
// that need nothing, because the store has lost it.
func (b *tagBook) draws(now, interval time.Duration, live int, seen bool) []driver.Draw {
	b.voided = false
	var waiting, names, others, otherNames []tagDraw // those that go by a pattern take no place of the others
	begin, _ := slices.BinarySearchFunc(b.accounts, b.next, func(a tagAccount, tag string) int { return cmp.Compare(a.Tag, tag) })
	for i := range b.accounts {
		a := &b.accounts[(begin+i)%len(b.accounts)]
		d, ok := b.draw(a, now, interval, live, seen)
		switch {
		case !ok || !d.asks() && (!seen || !d.known):
		case a.Waiting > 0 && d.Pattern:
			names = append(names, d)
		case a.Waiting > 0:
			waiting = append(waiting, d)
		case d.Pattern:
			otherNames = append(otherNames, d)
		default:
			others = append(others, d)
		}
	}
	usual := usualDraws
	if seen {
		usual = wire.MaxDraws
	}
	room := min(len(others), usual)
	all := slices.Concat(waiting, others[:room], names)
	all, left := cut(all, wire.MaxDraws)
	otherNames, idle := cut(otherNames, max(0, usual-len(all)))
	for _, l := range [][]tagDraw{left, others[room:], idle} {
		if len(l) > 0 {
			b.next = l[0].tag // it begins the next time
			break
		}
	}
	b.carried = slices.Concat(all, otherNames)
	var out []driver.Draw
	for i := range b.carried {
		out = append(out, b.carried[i].Draw)
	}
	return out
}

// cut returns the first n draws, and the rest.
func cut(all []tagDraw, n int) (first, rest []tagDraw) {
	n = min(n, len(all))
	return all[:n:n], all[n:]
}

// draw returns the draw of one tag in the next request; ok is false for a tag that needs nothing of a tag bucket.
func (b *tagBook) draw(a *tagAccount, now, interval time.Duration, live int, frozen bool) (d tagDraw, ok bool) {
	if !hasBucket(&a.quota) || len(a.quota.Budgets) > 0 && b.wall == 0 {
		return d, false
	}
	d = tagDraw{tag: a.Tag, window: a.window}
	if own := a.unreported(); own > 0 {
		b.reportOwn(&d, a, own)
		return d, true
	}
	if !b.unsure { // else the same again, of which the store counts the first that it gets
		a.named = a.BackSpent
	}
	d.Key, d.Version, d.Pattern, d.Back, d.Owed = a.key, b.version, !b.named(a.Tag), min(a.named, a.BackSpent), a.Owed
	d.Total, d.Per, d.Burst = a.quota.Enforced()
	d.Per = (d.Per + time.Microsecond - 1).Truncate(time.Microsecond) // the rate is never above the real one
	if !b.barred {
		d.Ask, d.Ahead = a.ask(now, interval, live)
		coming, _ := a.coming()
		d.covers = max(min(a.Line-coming, d.Ask+a.InHand), 0)
	}
	forgotten := frozen && (a.lack == driver.LackFrozen || !d.asks()) // the tag bucket gives nothing yet, or nothing is asked for
	for i := range min(len(a.quota.Budgets), len(a.budgets)) {
		w := &a.budgets[i]
		if a.quota.Budgets[i].Then == limit.ThenLower && w.spentAll() {
			if !forgotten {
				continue // the tag goes on without it
			}
			d.Ask, d.Ahead = 0, 0 // this budget has nothing left
		}
		d.budgets[len(d.Budgets)] = i
		d.known = d.known || w.seen > 0
		d.Budgets = append(d.Budgets, driver.BudgetDraw{Amount: w.amount, Start: w.start, End: w.end, Seen: w.seen})
	}
	return d, true // without a total, and with nothing but spent budgets that lower the class, it gets all that it asks for
}

// reportOwn makes d report the tokens granted here of budgets. They are owed, not only seen, because others have granted as well. Without a
// total they count for budgets alone: in their time the tag had a part of the total.
func (b *tagBook) reportOwn(d *tagDraw, a *tagAccount, own int64) {
	d.ownOnly = true
	d.Key, d.Version, d.Pattern, d.Owed = a.key, b.version, !b.named(a.Tag), own
	for i := range min(len(a.quota.Budgets), len(a.budgets)) {
		if w := &a.budgets[i]; w.own > 0 {
			d.budgets[len(d.Budgets)], d.own[i] = i, own
			d.Budgets = append(d.Budgets, driver.BudgetDraw{Amount: w.amount, Start: w.start, End: w.end, Seen: w.seen})
		}
	}
}

// take takes the answer to the draws of the newest request, which was sent at sent. interval sets how long draws of this answer are good.
func (b *tagBook) take(now, sent, interval time.Duration, a *driver.Answer) {
	b.detach()
	b.news = true
	if a.Wall > 0 {
		b.wall, b.wallAt = a.Wall, now
	}
	ends := int64(0)
	if a.Frozen > 0 {
		ends = a.Time + a.Frozen.Microseconds()
	}
	if ends != b.freeze && ends > 0 { // draws in a freeze, after tag buckets were held, are on record
		b.forget()
	}
	b.freeze = ends
	b.clock, b.good = a.Time, sent+2*interval
	drawn := a.Draws
	for i := range b.carried {
		c := &b.carried[i]
		t := b.account(c.tag)
		if t != nil && !c.ownOnly {
			t.BackSpent, t.Owed = max(0, t.BackSpent-c.Back), max(0, t.Owed-c.Owed)
		}
		if len(drawn) > 0 && drawn[0].Key == c.Key {
			if t != nil { // it was not forgotten meanwhile
				t.paid = sent + time.Duration(min(drawn[0].Paid-a.Time, maxAsk))*time.Microsecond
				b.drawn(t, c, &drawn[0], now, sent)
			}
			drawn = drawn[1:]
		}
	}
	b.carried = nil
	b.retime(now)
}

// retime sets from when and until when reservations can be used, by the store's clock in the newest answer: once they're earned, and for two
// intervals. This processor's clock drifts in a long wait by more than a draw is good for, and reservations made one after the other would be
// used together. A lost answer changes little: releaseDue uses nothing without an answer that is as young as a usable draw.
func (b *tagBook) retime(now time.Duration) {
	for i := range b.accounts {
		a := &b.accounts[i]
		a.reserved = slices.Clone(a.reserved) // no allocation for the many that have none
		for k := range a.reserved {
			l := &a.reserved[k]
			left := time.Duration(min(l.due-b.clock, wire.MaxReach.Microseconds())) * time.Microsecond
			l.from, l.until = now+left, b.good+left
		}
	}
}

// drawn takes the answer of one tag bucket.
func (b *tagBook) drawn(t *tagAccount, c *tagDraw, d *driver.Drawn, now, sent time.Duration) {
	if d.Lack == driver.LackFull { // nothing of the draw counts: the tag lives on its part, and the earnings of that
		if t.lack, t.again = d.Lack, 0; !c.ownOnly {
			t.owes(c.Owed)
		}
		return
	}
	for k, spent := range d.Spent {
		if k >= len(c.Budgets) || t.window != c.window {
			break
		}
		n := c.budgets[k]
		w := &t.budgets[n]
		w.seen, w.own = max(w.seen, spent), max(0, w.own-c.own[n])
	}
	t.lack, t.again, t.credit, t.earned = d.Lack, 0, 0, now
	if d.Again > 0 && d.Lack != driver.LackNothing {
		t.again, t.againFor = now+d.Again, 0
		if d.Lack == driver.LackTotal && c.Ahead > 0 { // all of the draw or nothing
			t.againFor = c.Ask
		}
	}
	t.refused(c, d)
	l := tagBatch{tokens: min(d.Tokens, c.Ask), from: sent, until: b.good, window: c.window}
	if l.tokens == 0 || now >= l.until || b.voided {
		return
	}
	if d.From > 0 {
		l.due, l.covers = b.clock+d.From.Microseconds(), c.covers
		t.reserved = append(slices.Clip(t.reserved), l)
		return
	}
	b.latest = max(b.latest, l.until)
	t.batch, t.granted = l, c.window
}

// refused handles a draw that was not granted in full.
func (a *tagAccount) refused(c *tagDraw, d *driver.Drawn) {
	none := c.Ahead > 0 && d.Tokens == 0
	a.behind = none && d.Lack == driver.LackTotal
	if none && d.Lack == driver.LackBudget && len(c.Budgets) > 0 && a.left() >= max(a.Head, 1) {
		a.lack, a.again = driver.LackNothing, 0 // less of the budget can be had
	}
}

// releaseDue makes a reservation a batch when it can be used. It rests on the store's memory, so the newest answer must be as young as a batch that
// is used.
func (b *tagBook) releaseDue(a *tagAccount, now time.Duration) {
	if a.batch.tokens > 0 {
		return // the next time
	}
	l := a.reserved[0]
	a.reserved, b.news = a.reserved[1:], true
	if a.Line -= l.covers; a.Line <= 0 { // the last report does not count it
		a.Line, a.Head = 0, 0
	}
	a.Waiting, a.InHand = max(a.Waiting-l.covers, 0), max(a.InHand+l.tokens-l.covers, 0)
	if l.until = min(l.until, b.good); now < l.until {
		a.batch, a.granted = l, l.window
		b.latest = max(b.latest, l.until)
	}
}

// forget notes that the store may have lost the draws it granted: their tokens are not given back, and reserved ones may go to others.
func (b *tagBook) forget() {
	b.forgot = max(b.forgot, b.latest)
	b.lost, b.news = true, true
	b.detach()
	for i := range b.accounts {
		b.accounts[i].BackSpent = 0
		b.accounts[i].reserved = nil
	}
}

// distrust ends all tokens in hand: the local clock was wrong about their age.
func (b *tagBook) distrust() {
	b.forget()
	b.void, b.voided, b.news = true, true, true
	for i := range b.accounts {
		b.accounts[i].batch, b.accounts[i].reserved = tagBatch{}, nil
	}
}
