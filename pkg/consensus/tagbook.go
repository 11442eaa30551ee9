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
	freeze int64         // the end of the pool's freeze, on the logical clock, by the newest answer; 0: it is not frozen
	good   time.Duration // until when a lot of the newest answer is good
	// forgot: what is given back until then may be of draws that the store has forgotten.
	forgot time.Duration
	void   bool // what is in hand cannot be trusted
	lost   bool // nor may it be given back
	voided bool // nor what the newest request brings
	news   bool // grants that the limiter does not have yet
	barred bool // nothing of the limit can be drawn until the freeze ends
}

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
			a.lot, b.news = tagLot{tokens: a.lot.tokens + back, from: now, until: now + 2*interval, window: a.window}, true
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
			a.lot = tagLot{tokens: a.lot.tokens + got, from: now, until: until, window: a.window}
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
		if l := b.accounts[i].reserved; len(l) > 0 && now >= l[0].from {
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
			g.Lot = limit.Lot{Tokens: l.tokens, From: base.Add(l.from), Until: base.Add(l.until), Window: l.window}
		}
		if a.again > 0 {
			g.Again, g.AgainFor = base.Add(a.again), a.againFor
		}
		if len(a.reserved) > 0 {
			first := &a.reserved[0]
			g.Again, g.AgainFor = base.Add(first.from), first.tokens
			g.Coming, _ = a.coming()
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
