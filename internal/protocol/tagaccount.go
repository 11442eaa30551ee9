package protocol

import (
	"cmp"
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A tagAccount is a processor's account of one of its own tags. It is a value: a copy of it shares nothing.
type tagAccount struct {
	// TagReport is the last report of the limiter, without Back. But BackSpent and Owed are the amounts that no answered request has
	// reported to the store yet.
	sharing.TagReport

	key     uint64
	quota   limit.Quota
	pattern int // of the quotas, whose quota it has, from 1; 0: it has its own, or is "" for all other tags

	marks    [3]tagMark // the newest first, one interval apart
	size     int64      // of the largest recent call that came first
	sizeOf   int        // how many reports ago
	demand   float64    // tokens per second
	wants    float64    // of the limit, in tokens per second: demand, or more for callers that come after a pause
	slow     bool       // the called service takes less
	reported float64    // demand reported to the others: no more than the service takes, but for reserved tokens
	recent   float64    // highest recent use, in tokens per second
	uses     float64    // use in the last two whole intervals, in tokens per second, for people to look at
	waited   int        // reports in a row with waiting callers
	active   time.Duration

	named   int64 // of BackSpent: what the newest request named, and any before it that has no answer
	budgets [wire.MaxBudgets]tagBudget
	window  int64 // counts the changes of budget windows
	granted int64 // the window in which the newest batch was granted

	// What the pool gives.
	batch    tagBatch
	reserved []tagBatch    // set aside by the store, in turn; never changed in place
	behind   bool          // others come first for longer than the tokens in hand last
	paid     time.Duration // local time at which all tokens given by the store are earned, by the newest answer
	lack     driver.Lack
	again    time.Duration // local time; 0: not known
	againFor int64         // again is for a draw of so many tokens; 0: for any
	rate     float64       // the tag's target rate here, in tokens per second
	reserves float64       // this processor's part of the reserved rate, in tokens per second
	held     bool          // rate is less than the tag asks for here, or than it could
	target   float64
	by       string
	credit   float64 // tokens earned without the store
	earned   time.Duration
}

// A tagMark is how many tokens had been used and refused at a time.
type tagMark struct {
	at            time.Duration
	used, refused int64
}

// A tagBatch is a sharing.Batch in local time.
type tagBatch struct {
	tokens      int64
	from, until time.Duration
	window      int64 // in which it was granted
	due         int64 // of a reservation: when all of it is earned, on the logical clock
	covers      int64 // of a reservation: tokens wanted by the callers it is for
}

// A tagBudget is one budget of a tag in its present window.
type tagBudget struct {
	per limit.Period
	// start and end are those of the window, on the store's clock in microseconds of Unix time.
	start, end int64
	amount     int64
	// seen is the highest spending that a store has reported, and own the tokens granted here without asking it.
	seen, own int64
}

// spent returns the least known spending.
func (b *tagBudget) spent() int64 { return b.seen + b.own }

// hasBucket reports whether the draws of a tag need tokens of its own.
func hasBucket(q *limit.Quota) bool { return !q.Blocked && (q.Total > 0 || len(q.Budgets) > 0) }

// perSecond returns a number of tokens per period as a rate; 0 without a period.
func perSecond(tokens int64, per time.Duration) float64 {
	if per <= 0 {
		return 0
	}
	return float64(tokens) / per.Seconds()
}

// take takes the limiter's report of the tag, except for tokens given back. local says that its tokens are granted without the store: owed
// tokens count against these.
func (a *tagAccount) take(r *sharing.TagReport, local bool) {
	if r.Again {
		a.Used, a.Refused = 0, 0
		for i := range a.marks {
			a.marks[i].used, a.marks[i].refused = 0, 0
		}
	}
	a.Used, a.Refused = max(a.Used, r.Used), max(a.Refused, r.Refused)
	a.Waiting, a.InHand, a.Head, a.Limiting = max(r.Waiting, 0), max(r.InHand, 0), max(r.Head, 0), max(r.Limiting, 0)
	a.Promised, a.Under = max(r.Promised, 0), r.Under
	a.Lasts, a.Line, a.More, a.Held = r.Lasts, max(r.Line, a.Head), r.More, r.Held
	if a.sizeOf++; a.Head >= a.size || a.sizeOf > keepSize {
		a.size, a.sizeOf = a.Head, 0
	}
	if owed := min(max(r.Owed, 0), maxAsk); local {
		a.owes(owed)
	} else {
		a.Owed = min(a.Owed+owed, maxAsk)
	}
}

// gives adds tokens of a window that are given up to those that the budgets get back. A total gets none.
func (a *tagAccount) gives(tokens, window int64) {
	if len(a.quota.Budgets) > 0 && window == a.window {
		a.BackSpent = min(a.BackSpent+tokens, maxAsk)
	}
}

// measure works out the demand: the larger of the last interval's and of the last two intervals'. A
// smoother that forgets slowly would miss every jump. interval is the present time between syncs.
func (a *tagAccount) measure(now, interval time.Duration) {
	if a.Used > a.marks[0].used || a.Refused > a.marks[0].refused || a.Waiting > 0 {
		a.active = now
	}
	least := interval * 9 / 10 // requests come a little early
	last := 0
	if now-a.marks[0].at < least {
		last = 1
	}
	a.demand, a.recent, a.wants = 0, 0, 0
	for i := last; i < last+2; i++ {
		m := &a.marks[i]
		over := max(now-m.at, least).Seconds()
		used := float64(a.Used - m.used)
		if i == last && used <= float64(a.Waiting) { // who waited for a sync is not to wait for another interval's earnings
			a.wants = float64(a.Waiting) / (interval / 4).Seconds()
		}
		a.demand = max(a.demand, (used+float64(a.Refused-m.refused)+float64(a.Waiting))/over)
		a.recent = max(a.recent, used/over)
	}
	if a.Waiting == 0 {
		a.waited = 0
	} else if a.waited++; a.waited > 1 {
		// Callers that wait for each token show their number, and not their possible use. So their demand is at least the reserved rate,
		// and twice their use.
		a.demand = max(a.demand, 2*a.recent, perSecond(int64(a.quota.Reserved), a.quota.Per))
	}
	a.wants = max(a.wants, a.demand)
	if (a.quota.Total > 0 || a.quota.Blocked) && !a.quota.Shadow {
		total := perSecond(int64(a.quota.Total), a.quota.Per)
		a.demand, a.wants = min(a.demand, total), min(a.wants, total)
	}
	a.slow = a.Limiting > 0 && (a.demand >= a.Limiting*near || a.Held && a.demand >= a.Limiting/2)
	if last == 0 {
		a.marks[2], a.marks[1] = a.marks[1], a.marks[0]
		a.marks[0] = tagMark{now, a.Used, a.Refused}
	}
	// Tokens of a total come all at once, so a span that begins before one batch and ends in the middle of another shows too much.
	a.uses = float64(a.marks[0].used-a.marks[2].used) / max(a.marks[0].at-a.marks[2].at, least).Seconds()
}

// exhausted reports whether a spent budget stops the tag.
func (a *tagAccount) exhausted() bool { return a.lack == driver.LackBudget && !a.quota.Shadow }

// lowered reports whether a spent budget moves the tag to the lower class.
func (a *tagAccount) lowered() bool {
	for i := range min(len(a.quota.Budgets), len(a.budgets)) {
		if a.quota.Budgets[i].Then == limit.ThenLower && a.budgets[i].spentAll() {
			return true
		}
	}
	return false
}

// unreported returns how many tokens granted here the next request reports: 0 when the store knows of all. The request after it reports the
// differences between budgets, which come from windows that began since.
func (a *tagAccount) unreported() (own int64) {
	for i := range min(len(a.quota.Budgets), len(a.budgets)) {
		if n := a.budgets[i].own; n > 0 {
			own = min(cmp.Or(own, n), n)
		}
	}
	return min(own, maxAsk)
}

// spentAll reports whether nothing is left of a known window.
func (b *tagBudget) spentAll() bool { return b.start > 0 && b.spent() >= b.amount }

// nearest returns the spent and allowed tokens of the budget window that ends first.
func (a *tagAccount) nearest() (spent, amount int64) {
	end := int64(math.MaxInt64)
	for i := range min(len(a.quota.Budgets), len(a.budgets)) {
		if b := &a.budgets[i]; b.start > 0 && b.end < end {
			end, spent, amount = b.end, b.spent(), b.amount
		}
	}
	return spent, amount
}

// roll brings the budget windows up to a time of the store's clock, in microseconds of Unix time.
func (a *tagAccount) roll(wall int64) {
	at, rolled := time.UnixMicro(wall), false
	for i := range a.budgets {
		if i >= len(a.quota.Budgets) {
			rolled = rolled || a.budgets[i].start > 0
			a.budgets[i] = tagBudget{}
			continue
		}
		q, b := &a.quota.Budgets[i], &a.budgets[i]
		start, end := q.Window(at)
		if next := start.UnixMicro(); b.per != q.Per || next != b.start {
			*b, rolled = tagBudget{per: q.Per, start: next}, true
		}
		b.end, b.amount = end.UnixMicro(), q.Amount
	}
	if rolled {
		a.window++
		a.BackSpent = 0 // that was of another window
	}
}

// near is one minus the fluctuation of demands. Callers that are held back are evidence enough: the service's limit rises while they are,
// and is reported ahead.
const near = 0.95

// maxAsk is the largest draw.
const maxAsk = 1_000_000_000

// warmFor is how many intervals after its last use a tag has a token in hand, where there are enough.
const warmFor = 10

// keepSize is the number of reports for which the largest recent call counts as the size of the next ones. It does not decay: a size
// that no call has would set aside part of a call.
const keepSize = 10

// ask returns the tokens to ask for, enough until shortly after the next answer, and how far ahead the store may set them aside; 0: fewer
// tokens will do. For waiting callers it asks for whole calls, in turn with other processors. If each held part of a call, all parts
// would lapse before one was complete.
func (a *tagAccount) ask(now, interval time.Duration, live int) (tokens int64, ahead time.Duration) {
	span := interval * 5 / 4
	_, last := a.coming()
	if span -= max(last-now, 0); span < interval/4 {
		return 0, 0 // there is time until the next request
	}
	need, ahead := a.wholeCalls(now, interval, a.need(now, interval, span, live), live)
	tokens = int64(math.Ceil(min(max(need-0.1, 0), maxAsk))) // a trace of a token is none
	if left := a.left(); ahead > 0 && left >= a.Head {
		tokens = min(tokens, left)
	}
	if most := a.quota.Largest(); most > 0 {
		tokens = min(tokens, most) // the promise of a hard quota counts one draw
	}
	if a.quota.Total == 0 || tokens == 0 {
		ahead = 0
	}
	return tokens, ahead
}

// wholeCalls rounds need, in tokens, to whole calls. If callers wait, it is at least what the first of them lack, and ahead is how far the
// store may set that aside.
func (a *tagAccount) wholeCalls(now, interval time.Duration, need float64, live int) (tokens float64, ahead time.Duration) {
	if a.held && a.Promised > 0 && need <= 0 {
		return 0, 0 // callers that have their tokens wait for the limit; tokens for those behind them would lapse
	}
	coming, _ := a.coming()
	lack := float64(a.Line - coming)
	need = a.forLater(now, interval, need, lack, live)
	if a.Head == 0 {
		return need, 0
	}
	lasts := max(a.Lasts-interval*3/10, 1) // before they are given up
	room, hand := a.comes(now, max(lasts, interval*9/10)), float64(a.InHand)
	switch first := float64(a.Head) - hand; {
	case coming > 0 || hand == 0 || a.behind: // tokens in hand don't count: they would lapse before the rest comes
	case lack-hand <= room:
		return max(min(need, room), lack-hand), lasts
	case first > 0 && first <= room: // not for all callers, but for the first
		return first, lasts
	}
	return max(need, lack), wire.MaxReach
}

// forLater is the part of need, in tokens, worth asking for on behalf of callers that are not there yet: enough for the largest recent
// call, or nothing. While callers wait and the tag bucket has other users, it is no more than the tag bucket gives at once. Alone, a processor delays
// nobody by setting aside more.
func (a *tagAccount) forLater(now, interval time.Duration, need, lack float64, live int) float64 {
	if soon := a.comes(now, interval); a.Head > 0 && (live > 1 || soon >= max(lack, 1)) {
		need = min(need, soon)
	}
	size, spare := float64(a.size), float64(max(a.InHand+a.spare(), 0))
	switch {
	case a.More:
		return 0
	case need+spare >= size:
		return need
	case a.Head > 0 && need+spare >= size/2:
		return size - spare
	}
	return 0
}

// need returns the tokens that the tag will use in span, less those in hand.
func (a *tagAccount) need(now, interval, span time.Duration, live int) float64 {
	total, per, burst := a.quota.Enforced()
	earns, seconds := perSecond(total, per), span.Seconds()
	need := a.demand*seconds + float64(a.Waiting)
	if a.Limiting > 0 {
		need = min(need, a.Limiting*seconds)
	}
	if total > 0 {
		need = min(need, earns*seconds+float64(burst)) // more cannot be used until then
	}
	if a.held {
		need = min(need, a.rate*seconds)
	}
	need -= float64(a.InHand + a.Promised)
	idle := now - a.active
	warm := idle < warmFor*interval && (total == 0 || earns*interval.Seconds() >= float64(2*live))
	if a.InHand+a.Promised == 0 && (a.Waiting > 0 || warm && a.active > 0) {
		need = max(need, 1)
	}
	return need
}

// spare is how many tokens are set aside beyond those that coming covers; below 0 if coming counts on tokens in hand.
func (a *tagAccount) spare() (tokens int64) {
	for i := range a.reserved {
		tokens += a.reserved[i].tokens - a.reserved[i].covers
	}
	return tokens
}

// comes is how many tokens the tag bucket gives in d, if nobody else has drawn since the last answer: any number without a total.
func (a *tagAccount) comes(now, d time.Duration) float64 {
	total, per, _ := a.quota.Enforced()
	if total == 0 {
		return maxAsk
	}
	return perSecond(total, per) * (d - max(a.paid-now, 0)).Seconds()
}

// coming returns how many tokens of calls are covered by those set aside, and when the last of these can be used.
func (a *tagAccount) coming() (covers int64, last time.Duration) {
	for i := range a.reserved {
		covers += a.reserved[i].covers
		last = max(last, a.reserved[i].from)
	}
	return covers, last
}

// left returns the known rest of the budgets that end the tag's draws.
func (a *tagAccount) left() int64 {
	left := int64(math.MaxInt64)
	for i := range min(len(a.quota.Budgets), len(a.budgets)) {
		if b := &a.budgets[i]; b.start > 0 && a.quota.Budgets[i].Then != limit.ThenLower {
			left = min(left, b.amount-b.spent())
		}
	}
	return left
}

// earn adds the earnings of a part of the tag's total without the store, and returns the tokens available of want. These are at least the
// least for which the first caller waits, or none. Fewer would lapse before more come, so they are saved up, unless the quota is hard.
func (a *tagAccount) earn(now, interval time.Duration, share float64, want, least int64) int64 {
	total, per, burst := a.quota.Enforced()
	got := float64(want)
	if total > 0 {
		rate := perSecond(total, per) * share
		span := min(now-a.earned, interval+interval/4).Seconds()
		room := max(rate*interval.Seconds(), float64(burst)*share, 1)
		if !a.quota.Hard {
			room = max(room, float64(min(least, maxAsk)))
		}
		a.credit = min(a.credit+rate*span, room)
		got = min(got, math.Floor(a.credit))
	}
	a.earned = now
	for i := range min(len(a.quota.Budgets), len(a.budgets)) {
		b := &a.budgets[i]
		if b.start == 0 {
			return 0 // the time is not known yet
		}
		if a.quota.Budgets[i].Then == limit.ThenLower && b.spentAll() {
			continue
		}
		got = min(got, math.Floor(float64(b.amount-b.seen)*share)-float64(b.own))
	}
	tokens := int64(max(got, 0))
	if tokens < min(least, maxAsk) {
		return 0
	}
	if total > 0 {
		a.credit -= float64(tokens)
	}
	for i := range a.budgets {
		a.budgets[i].own += tokens
	}
	return tokens
}

// owes counts use above the tokens granted without the store.
func (a *tagAccount) owes(tokens int64) { a.unearn(-tokens, -tokens) }

// unearn takes back tokens that were earned without the store and given up.
func (a *tagAccount) unearn(tokens, spent int64) {
	a.credit += float64(tokens)
	for i := range a.budgets {
		a.budgets[i].own = max(0, a.budgets[i].own-spent)
	}
}
