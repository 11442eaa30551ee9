package consensus

import (
	"cmp"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/limit"
	"github.com/numaproj-contrib/numathrottle/internal/quota"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A tagBook keeps the accounts of a processor's own tags. It turns what the limiter reports into draws on
// the store's tills, and what these give into lots. It has no clock and no I/O; it is a part of Processor,
// whose copies keep what they had.
//
// Invariant: what is given back to the store has left the limiter's hand before the request was made, and
// is told by requests until one of them is answered.
type tagBook struct {
	quotas   quota.Quotas // in force
	version  Version      // of the document that changes them; 0: there is none
	accounts []tagAccount // by rising tag
	next     string       // whose turn it is when not all tags have room in a request
	carried  []tagDraw    // what the newest request says, tag by tag

	wall   int64 // the store's clock, in microseconds of Unix time; 0: it has not told
	wallAt time.Duration
	latest time.Duration // when the lot ends that ends last
	good   time.Duration // until when a lot of the newest answer is good
	// forgot: what is given back until then may be of draws that the store has forgotten.
	forgot time.Duration
	void   bool // what is in hand cannot be trusted
	lost   bool // nor may it be given back
	voided bool // nor what the newest request brings
	news   bool // grants that the limiter does not have yet
}

// A tagDraw is what a request says of one tag.
type tagDraw struct {
	driver.Draw

	tag       string
	backSpent int64 // that is settled by an answer, even if it is of another window
	window    int64
	budgets   [driver.MaxBudgets]int   // the index of each budget of the draw
	own       [driver.MaxBudgets]int64 // what was granted here of each, as told
	known     bool                     // something is known to be spent
	tells     bool                     // it tells what was granted here, and nothing else
}

// asks tells whether the store has anything to do for the tag.
func (d *tagDraw) asks() bool { return d.Ask > 0 || d.Back > 0 || d.Owed > 0 }

// Bounds of a book.
const (
	maxAccounts = 2048
	// usualDraws is how many draws a request has, but for tags that wait.
	usualDraws = 64
)

// setQuotas puts quotas in force, which have their defaults filled in.
func (b *tagBook) setQuotas(q quota.Quotas, version Version) {
	b.quotas, b.version, b.news = q, version, true
	b.detach()
	for i := range b.accounts {
		a := &b.accounts[i]
		a.quota, a.pattern = b.find(a.Tag)
		a.lack, a.again = driver.LackNothing, 0
		if b.wall > 0 {
			a.roll(b.wall)
		}
	}
}

// detach makes the accounts this book's own: a copy of the processor keeps what it had.
func (b *tagBook) detach() { b.accounts = slices.Clone(b.accounts) }

// find returns the quota of a tag, and the pattern that it is from, from 1.
func (b *tagBook) find(tag string) (q quota.Quota, pattern int) {
	name, q := b.quotas.Find(tag)
	if _, has := b.quotas.Tags[name]; has || name == "" {
		return q, 0
	}
	for i := range b.quotas.Match {
		one := quota.Quotas{Match: b.quotas.Match[i : i+1]}
		if n, _ := one.Find(tag); n == name {
			return q, i + 1
		}
	}
	return q, 0
}

// account returns the account of a tag, and makes it if there is room. nil: there is none.
func (b *tagBook) account(tag string, now time.Duration) *tagAccount {
	i, ok := slices.BinarySearchFunc(b.accounts, tag, func(a tagAccount, tag string) int { return cmp.Compare(a.Tag, tag) })
	if ok {
		return &b.accounts[i]
	}
	if len(b.accounts) >= maxAccounts && !b.evict(now) {
		return nil
	}
	a := tagAccount{key: quota.Key(tag)}
	a.Tag = tag
	if tag == "" {
		a.key = quota.OtherKey
	}
	a.quota, a.pattern = b.find(tag)
	i, _ = slices.BinarySearchFunc(b.accounts, tag, func(a tagAccount, tag string) int { return cmp.Compare(a.Tag, tag) })
	b.accounts = slices.Insert(b.accounts, i, a)
	return &b.accounts[i]
}

// evict drops the account that has been idle longest, if one is idle and owes nothing.
func (b *tagBook) evict(now time.Duration) bool {
	oldest := -1
	for i := range b.accounts {
		a := &b.accounts[i]
		idle := a.active < now && a.Owed == 0 && a.InHand == 0 && a.Waiting == 0
		if idle && (oldest < 0 || a.active < b.accounts[oldest].active) {
			oldest = i
		}
	}
	if oldest < 0 {
		return false
	}
	b.accounts = slices.Delete(b.accounts, oldest, oldest+1)
	return true
}

// report takes what the limiter says, before a request. local says that what is given back was granted
// without the store.
func (b *tagBook) report(now, interval time.Duration, local bool, reports []limit.TagReport) {
	b.detach()
	for i := range b.accounts {
		a := &b.accounts[i]
		a.Waiting, a.InHand, a.Head, a.Limiting, a.Held = 0, 0, 0, 0, false // whom the limiter does not name
	}
	for i := range reports {
		r := &reports[i]
		a := b.account(r.Tag, now)
		if a == nil {
			continue // no draws for it, and nothing in hand
		}
		a.take(r, local)
		back := max(r.Back, 0)
		spent := min(max(r.BackSpent, 0), back)
		switch {
		case local:
			a.unearn(back, spent)
		case now < b.forgot && !skip(ruleTillForgotten):
		default:
			a.gives(back, spent)
		}
		if skip(ruleTillGivenUp) && back > 0 {
			a.lot, b.news = tagLot{a.lot.tokens + back, now, now + 2*interval}, true
		}
	}
	for i := range b.accounts {
		a := &b.accounts[i]
		a.measure(now, interval)
		if b.wall > 0 {
			a.roll(b.storeClock(now))
		}
		if now >= a.again && a.again > 0 {
			a.lack, a.again = driver.LackNothing, 0
		}
	}
}

// storeClock is the store's own clock as it was told last, and the local time since.
func (b *tagBook) storeClock(now time.Duration) int64 {
	return b.wall + (now - b.wallAt).Microseconds()
}

// draws returns what the next request asks of the tills: tags that wait first, and then the others in turn.
// seen makes it tell what is known to be spent of tags that need nothing, because the store has forgotten.
func (b *tagBook) draws(now, interval time.Duration, live int, seen bool) []driver.Draw {
	b.voided = false
	var waiting, others []tagDraw
	begin, _ := slices.BinarySearchFunc(b.accounts, b.next, func(a tagAccount, tag string) int { return cmp.Compare(a.Tag, tag) })
	for i := range b.accounts {
		a := &b.accounts[(begin+i)%len(b.accounts)]
		d, ok := b.draw(a, now, interval, live, seen)
		switch {
		case !ok || !d.asks() && (!seen || !d.known):
		case a.Waiting > 0:
			waiting = append(waiting, d)
		default:
			others = append(others, d)
		}
	}
	usual := usualDraws
	if seen {
		usual = driver.MaxDraws
	}
	taken := waiting[:min(len(waiting), driver.MaxDraws)]
	rest := others[:min(len(others), max(0, usual-len(taken)))]
	switch { // the first that has no room begins the next time
	case len(taken) < len(waiting):
		b.next = waiting[len(taken)].tag
	case len(rest) < len(others):
		b.next = others[len(rest)].tag
	}
	b.carried = slices.Concat(taken, rest)
	var out []driver.Draw
	for i := range b.carried {
		out = append(out, b.carried[i].Draw)
	}
	return out
}

// draw returns what the next request says of one tag; ok is false for a tag that needs nothing of a till.
func (b *tagBook) draw(a *tagAccount, now, interval time.Duration, live int, frozen bool) (d tagDraw, ok bool) {
	if !hasTill(&a.quota) || len(a.quota.Budgets) > 0 && b.wall == 0 {
		return d, false
	}
	d = tagDraw{tag: a.Tag, window: a.window, backSpent: a.BackSpent}
	if own := a.untold(); own > 0 {
		b.tell(&d, a, own)
		return d, true
	}
	d.Key, d.Version, d.Back, d.Owed = a.key, b.version, a.Back, a.Owed
	d.Total, d.Per, d.Burst = a.quota.Enforced()
	d.Per = (d.Per + time.Microsecond - 1).Truncate(time.Microsecond) // the rate is never above the real one
	if d.Ask, d.Ahead = a.ask(now, interval, live); frozen && d.Ahead > 0 {
		d.Ask, d.Ahead = 0, 0 // the next answer would end it
	}
	if a.granted == a.window {
		d.BackSpent = min(a.BackSpent, a.Back)
	}
	forgotten := frozen && (a.lack == driver.LackFrozen || !d.asks()) // the till gives nothing yet, or nothing is asked for
	for i := range min(len(a.quota.Budgets), len(a.budgets)) {
		w := &a.budgets[i]
		if a.quota.Budgets[i].Then == quota.Lower && w.spentAll() {
			if !forgotten {
				continue // the tag goes on without it
			}
			d.Ask, d.Ahead = 0, 0 // by it there is nothing to be had
		}
		d.budgets[len(d.Budgets)] = i
		d.known = d.known || w.seen > 0
		d.Budgets = append(d.Budgets, driver.BudgetDraw{Amount: w.amount, Start: w.start, End: w.end, Seen: w.seen})
	}
	return d, true // without a total, and with nothing but spent budgets that lower the class, it gets all that it asks for
}

// tell makes d one that tells the store what was granted here of budgets. It is owed, and not only seen, for others have granted as well. Without a total
// it counts for budgets alone: in its time the tag had a part of the total.
func (b *tagBook) tell(d *tagDraw, a *tagAccount, own int64) {
	d.tells = true
	d.Key, d.Version, d.Owed = a.key, b.version, own
	for i := range min(len(a.quota.Budgets), len(a.budgets)) {
		if w := &a.budgets[i]; w.own > 0 {
			d.budgets[len(d.Budgets)], d.own[i] = i, own
			d.Budgets = append(d.Budgets, driver.BudgetDraw{Amount: w.amount, Start: w.start, End: w.end, Seen: w.seen})
		}
	}
}

// take takes what an answer says to the draws of the newest request, which was sent at a time.
// interval is the one by which draws of this answer are good.
func (b *tagBook) take(now, sent, interval time.Duration, a *driver.Answer) {
	b.detach()
	b.news = true
	if a.Wall > 0 {
		b.wall, b.wallAt = a.Wall, now
	}
	if a.Frozen > 0 {
		b.forget()
	}
	b.good = sent + 2*interval
	drawn := a.Draws
	for i := range b.carried {
		c := &b.carried[i]
		t := b.account(c.tag, now)
		if t == nil {
			continue
		}
		if !c.tells {
			t.Back, t.BackSpent, t.Owed = max(0, t.Back-c.Back), max(0, t.BackSpent-c.backSpent), max(0, t.Owed-c.Owed)
		}
		if len(drawn) > 0 && drawn[0].Key == c.Key {
			b.drawn(t, c, &drawn[0], now, sent, interval)
			drawn = drawn[1:]
		}
	}
	b.carried = nil
}

// drawn takes what one till has given.
func (b *tagBook) drawn(t *tagAccount, c *tagDraw, d *driver.Drawn, now, sent, interval time.Duration) {
	if d.Lack == driver.LackFull { // nothing of the draw counts: the tag lives on its part, and on what that has earned
		if t.lack, t.again = d.Lack, 0; !c.tells {
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
		t.again = now + d.Again
	}
	l := tagLot{tokens: min(d.Tokens, c.Ask), from: sent, until: sent + d.From + 2*interval}
	if d.From > 0 {
		l.from = now + d.From // never before the store's time: the answer came later
	}
	if skip(ruleTillVoid) {
		l.until = now + d.From + 20*interval
	}
	if l.tokens == 0 || max(l.from, now) >= l.until || b.voided {
		return
	}
	b.latest = max(b.latest, l.until)
	if d.From > 0 {
		t.reserved, t.reservedIn = l, c.window
		return
	}
	t.lot, t.granted = l, c.window
}

// ripen makes a reservation a lot when it can be used. It rests on what the store remembers, so the newest answer must be as young as a
// lot that is used.
func (b *tagBook) ripen(a *tagAccount, now time.Duration) {
	l := a.reserved
	if a.lot.tokens > 0 {
		return // the next time
	}
	a.reserved, b.news = tagLot{}, true
	if l.until = min(l.until, b.good); now < l.until {
		a.lot, a.granted = l, a.reservedIn
	}
}

// forget notes that the store may not remember what it has given: it is not given back, and what is reserved may be
// given to others.
func (b *tagBook) forget() {
	b.forgot = max(b.forgot, b.latest)
	if skip(ruleTillForgotten) {
		return
	}
	b.lost, b.news = true, true
	b.detach()
	for i := range b.accounts {
		b.accounts[i].Back, b.accounts[i].BackSpent = 0, 0
		b.accounts[i].reserved = tagLot{}
	}
}

// distrust ends all that is in hand: the local clock was wrong about its age.
func (b *tagBook) distrust() {
	b.forget()
	b.void, b.voided, b.news = true, true, true
	for i := range b.accounts {
		b.accounts[i].lot, b.accounts[i].reserved = tagLot{}, tagLot{}
	}
}

// grantLocally gives lots that the store knows nothing of: a share of what the tag may use over the whole
// pool. Those of all processors add up to that as long as their shares add up to the whole.
func (b *tagBook) grantLocally(now, interval, end time.Duration, live int, share float64, which func(*tagAccount) bool) {
	b.detach()
	for i := range b.accounts {
		a := &b.accounts[i]
		if !hasTill(&a.quota) || !which(a) {
			continue
		}
		want, _ := a.ask(now, interval, live)
		want = min(max(want, a.Waiting-a.InHand), maxAsk)
		got := a.earn(now, interval, share, want, a.Head-a.InHand)
		a.lack, a.again = driver.LackNothing, 0
		if got < want {
			a.lack = driver.LackTotal
		}
		if until := min(now+2*interval, end); got > 0 && until > now {
			a.lot = tagLot{a.lot.tokens + got, now, until}
			a.InHand += got
			a.granted = a.window
			b.latest = max(b.latest, until)
		}
		b.news = true
	}
}

// reasonOf is what a lack means for a caller.
func reasonOf(l driver.Lack) limit.Reason {
	switch l {
	case driver.LackBudget, driver.LackWindow:
		return limit.ReasonBudget
	case driver.LackFrozen:
		return limit.ReasonFrozen
	case driver.LackTotal, driver.LackVersion, driver.LackFull:
		return limit.ReasonQuota
	case driver.LackNothing:
	}
	return ""
}

// grants returns what the limiter has not got yet, and nil if that is nothing. base is the origin of local
// time. Every tag is named that has a rate, for a limiter takes others to have none.
func (b *tagBook) grants(base time.Time, now time.Duration) []limit.TagGrant {
	for i := range b.accounts {
		if l := b.accounts[i].reserved; l.tokens > 0 && now >= l.from {
			b.detach()
			b.ripen(&b.accounts[i], now)
		}
	}
	if !b.news {
		return nil
	}
	b.news = false
	b.detach()
	out := make([]limit.TagGrant, 0, len(b.accounts))
	for i := range b.accounts {
		a := &b.accounts[i]
		g := limit.TagGrant{
			Tag: a.Tag, Rate: a.rate, Target: a.target, By: a.by, Reserved: a.reserves, Needed: hasTill(&a.quota), Void: b.void, Forgotten: b.lost,
			Lowered: a.lowered(), Lacks: reasonOf(a.lack),
		}
		if l := a.lot; l.tokens > 0 {
			g.Lot = limit.Lot{Tokens: l.tokens, From: base.Add(l.from), Until: base.Add(l.until), Window: a.granted}
		}
		if a.again > 0 {
			g.Again = base.Add(a.again)
		}
		if l := a.reserved; l.tokens > 0 {
			g.Again = base.Add(l.from)
		}
		if a.exhausted() {
			g.By = "budget"
		}
		g.Spent, g.Budget = a.nearest()
		a.lot = tagLot{}
		out = append(out, g)
	}
	b.void, b.lost = false, false
	return out
}
