package protocol

import (
	"cmp"
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A tagBook keeps the accounts of a processor's own tags. It turns the limiter's reports into draws on the store's tag buckets (a tag bucket is the
// store's account of one tag), and the answers into batches. It has no clock and no I/O; it is a part of Processor, whose copies keep their
// state.
//
// Invariant: tokens given back to the store have left the limiter's hand before the request was made, and requests report them until one of
// them is answered.
type tagBook struct {
	quotas   limit.Quotas   // in force
	version  driver.Version // of the document that changes them; 0: there is none
	accounts []tagAccount   // by rising tag
	next     string         // the first in turn when not all tags have room in a request
	carried  []tagDraw      // the draws of the newest request, tag by tag

	wall   int64 // the store's clock, in microseconds of Unix time; 0: not known
	wallAt time.Duration
	latest time.Duration // the latest end of a batch
	freeze int64         // the end of the pool's freeze, on the logical clock, by the newest answer; 0: it is not frozen
	clock  int64         // the logical clock of the newest answer
	good   time.Duration // until when a batch of the newest answer is good
	// forgot: tokens given back until then may be of draws that the store has lost.
	forgot time.Duration
	void   bool // tokens in hand cannot be trusted
	lost   bool // nor may they be given back
	voided bool // nor can those of the newest request
	news   bool // grants that the limiter has not received
	barred bool // nothing of the limit can be drawn until the freeze ends, or ever again
	unsure bool // the store may have carried out a request that has no answer
}

// Bounds of a book.
const (
	maxAccounts = 16_384
	// usualDraws is how many draws a request has, without those of waiting tags.
	usualDraws = 256
	// usualAccounts is how many there are before names of patterns are dropped that were idle for idleFor intervals and have no budgets.
	// Known spending is kept, because the store may lose it.
	usualAccounts, idleFor = 2048, 10
)

// setQuotas puts quotas in force, which have their defaults filled in.
func (b *tagBook) setQuotas(q limit.Quotas, version driver.Version) {
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

// detach makes the accounts this book's own: a copy of the processor keeps its accounts.
func (b *tagBook) detach() { b.accounts = slices.Clone(b.accounts) }

// find returns the quota of a tag, and the number of its pattern, from 1; 0: none.
func (b *tagBook) find(tag string) (q limit.Quota, pattern int) {
	name, q := b.quotas.Find(tag)
	if _, has := b.quotas.Tags[name]; has || name == "" {
		return q, 0
	}
	for i := range b.quotas.Match {
		one := limit.Quotas{Match: b.quotas.Match[i : i+1]}
		if n, _ := one.Find(tag); n == name {
			return q, i + 1
		}
	}
	return q, 0
}

// account returns the account of a tag, nil if it has none.
func (b *tagBook) account(tag string) *tagAccount {
	i, ok := slices.BinarySearchFunc(b.accounts, tag, func(a tagAccount, tag string) int { return cmp.Compare(a.Tag, tag) })
	if !ok {
		return nil
	}
	return &b.accounts[i]
}

// admit makes accounts for tags that have none. Tags with a quota by name always get one, and names of patterns get one while there is
// room.
func (b *tagBook) admit(now, interval time.Duration, reports []sharing.TagReport) {
	var named, names []tagAccount
	for i := range reports {
		tag := reports[i].Tag
		if b.account(tag) != nil {
			continue
		}
		a := tagAccount{key: tagname.Key(tag)} // that of "" is the one of all others
		a.Tag = tag
		a.quota, a.pattern = b.find(tag)
		if b.named(tag) {
			named = append(named, a)
		} else {
			names = append(names, a)
		}
	}
	if len(named)+len(names) == 0 {
		return
	}
	room := func() int { return max(maxAccounts-len(b.accounts)-len(named), 0) }
	if len(b.accounts)+len(names) > usualAccounts {
		b.forgetIdle(now-idleFor*interval, reports, func(a *tagAccount) bool { return len(a.quota.Budgets) == 0 })
	}
	if room() < len(names) {
		b.forgetIdle(now, reports, func(*tagAccount) bool { return true })
	}
	fresh := slices.Concat(named, names[:min(len(names), room())])
	slices.SortFunc(fresh, byTag)
	fresh = slices.CompactFunc(fresh, func(a, b tagAccount) bool { return a.Tag == b.Tag })
	all := make([]tagAccount, 0, len(b.accounts)+len(fresh))
	for i := range b.accounts {
		for ; len(fresh) > 0 && fresh[0].Tag < b.accounts[i].Tag; fresh = fresh[1:] {
			all = append(all, fresh[0])
		}
		all = append(all, b.accounts[i])
	}
	all = append(all, fresh...)
	b.accounts = all
}

func byTag(a, b tagAccount) int { return cmp.Compare(a.Tag, b.Tag) }

// named reports whether a tag has a quota by its name, or is "" for all others.
func (b *tagBook) named(tag string) bool {
	_, has := b.quotas.Tags[tag]
	return has || tag == ""
}

// forgetIdle drops the accounts of names that were last in use at a time or before, owe nothing, and are not reported now.
func (b *tagBook) forgetIdle(since time.Duration, reports []sharing.TagReport, which func(*tagAccount) bool) {
	reported := make(map[string]bool, len(reports))
	for i := range reports {
		reported[reports[i].Tag] = true
	}
	b.accounts = slices.DeleteFunc(b.accounts, func(a tagAccount) bool {
		return a.active <= since && a.Owed == 0 && !reported[a.Tag] && !b.named(a.Tag) && which(&a)
	})
}

// report takes the limiter's reports, before a request. local says that returned tokens were granted without the store.
func (b *tagBook) report(now, interval time.Duration, local bool, reports []sharing.TagReport) {
	b.detach()
	for i := range b.accounts {
		a := &b.accounts[i]
		a.Waiting, a.InHand, a.Promised, a.Head, a.Limiting, a.Held = 0, 0, 0, 0, 0, false // tags that the limiter does not name
	}
	b.admit(now, interval, reports)
	for i := range reports {
		r := &reports[i]
		a := b.account(r.Tag)
		if a == nil {
			continue // no draws for it, and nothing in hand
		}
		a.take(r, local)
		back := max(r.Back, 0)
		spent := min(max(r.BackSpent, 0), back)
		switch {
		case local:
			a.unearn(back, spent)
		case now < b.forgot:
		default:
			a.gives(spent, a.granted)
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

// storeClock is the store's own clock: its last report plus the local time since.
func (b *tagBook) storeClock(now time.Duration) int64 {
	return b.wall + (now - b.wallAt).Microseconds()
}

// grantLocally gives batches unknown to the store: a share of the tokens that the tag may use over the whole pool. The batches of all processors
// add up to these as long as their shares add up to the whole.
func (b *tagBook) grantLocally(now, interval, end time.Duration, live int, share float64, which func(*tagAccount) bool) {
	b.detach()
	for i := range b.accounts {
		a := &b.accounts[i]
		if !hasBucket(&a.quota) || !which(a) {
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
			a.batch = tagBatch{tokens: a.batch.tokens + got, from: now, until: until, window: a.window}
			a.InHand += got
			a.granted = a.window
			b.latest = max(b.latest, until)
		}
		b.news = true
	}
}

// reasonOf returns the reason that a caller gets for a lack.
func reasonOf(l driver.Lack) limit.Reason {
	switch l {
	case driver.LackBudget, driver.LackWindow:
		return limit.ReasonBudget
	case driver.LackFrozen:
		return limit.ReasonFrozen
	case driver.LackFull:
		return limit.ReasonNames
	case driver.LackTotal, driver.LackVersion:
		return limit.ReasonQuota
	case driver.LackNothing:
	}
	return ""
}

// grants returns the grants that the limiter has not received, nil if there are none. base is the origin of local time. Every tag with a
// rate is named, because a limiter takes others to have none.
func (b *tagBook) grants(base time.Time, now time.Duration) []sharing.TagGrant {
	for i := range b.accounts {
		if l := b.accounts[i].reserved; len(l) > 0 && now >= l[0].from {
			b.detach()
			b.releaseDue(&b.accounts[i], now)
		}
	}
	if !b.news {
		return nil
	}
	b.news = false
	b.detach()
	out := make([]sharing.TagGrant, 0, len(b.accounts))
	for i := range b.accounts {
		a := &b.accounts[i]
		g := sharing.TagGrant{
			Tag: a.Tag, Rate: a.rate, Target: a.target, By: a.by, Reserved: a.reserves, Needed: hasBucket(&a.quota), Void: b.void, Forgotten: b.lost,
			Lowered: a.lowered(), Lacks: reasonOf(a.lack),
		}
		if l := a.batch; l.tokens > 0 {
			g.Batch = sharing.Batch{Tokens: l.tokens, From: base.Add(l.from), Until: base.Add(l.until), Window: l.window}
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
		a.batch = tagBatch{}
		out = append(out, g)
	}
	b.void, b.lost = false, false
	return out
}
