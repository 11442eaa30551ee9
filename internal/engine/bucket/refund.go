package bucket

// Refund credits the unused part of n tokens that a permit drew at position pos. It returns whether anything was credited.
//
// It credits that part only if at most one period's worth of tokens was granted since the permit was drawn. Every credit can be granted
// again. So at most one period's worth can be held back from one window and used in the next, whatever the calls do. A share that falls
// takes the same part of that with it, for good. Otherwise every processor that the share comes round to could use a period's worth of its
// own. A hard limit has a stricter rule; see RefundHard.
func (b *Bucket) Refund(now, pos int64, n, used int) bool {
	end := pos + b.Units(n)
	period := max(b.period(b.seg.Lease.Share), b.seg.Capacity, b.Units(n))
	late := end < b.kept || (b.granted.Load()-pos)>>b.Shift > period>>b.Shift
	if late {
		return false
	}
	back := b.fitting(now, b.Units(n-used))
	b.credit(back)
	return back > 0
}

// RefundHard credits the part that a hard limit allows of n units of a permit. The permit's draw ends at position end of all grants. The
// limiter's lock is held.
//
// At no moment since the draw has the bucket held more than its present level plus the grants since. It has earned meanwhile, and has
// either lost nothing or overflowed; in the latter case this sum is the capacity or more. So if the sum and n more fit into the bucket, one
// that held n more all the time would not have overflowed. Earlier credits do not change that: they are part of the present level. A change
// of share and a debt break the reasoning, and nothing that was drawn before them is credited; see Bucket.kept.
//
// The gate must be shut meanwhile, so that nothing is granted between the sum and the credit; a draw at that very moment is refused.
func (b *Bucket) RefundHard(now, end, n int64) {
	since := b.granted.Load() - end
	room := b.fitting(now, MaxUnits) - since>>b.Shift<<b.Shift // less the fences among them
	b.credit(max(0, min(n, room)))
}

// Credit books n returned tokens that belong to no particular draw, up to the capacity.
func (b *Bucket) Credit(now int64, n int) {
	b.credit(b.fitting(now, b.Units(min(n, maxDebt>>b.Shift))))
}

func (b *Bucket) credit(units int64) {
	b.credited += units
	b.forfeited.Add(-units)
}

// maxDebt is the most that any bucket can owe, in units: at least a year's worth of the whole limit.
const maxDebt = MaxUnits / 2

// Owe books n tokens of debt, for use above a permit's cost. It returns how many of them it does not book, for no more than Config.Debt is
// owed.
func (b *Bucket) Owe(now int64, n int) (excess int) {
	units, excess := b.bookable(now, n)
	b.forfeited.Add(units)
	b.Fence()
	if b.config.Hard {
		b.kept = b.granted.Load()
	}
	return excess
}

// Charge is Owe for n tokens of a call that drew nothing: they count as drawn.
func (b *Bucket) Charge(now int64, n int) (excess int) {
	units, excess := b.bookable(now, n)
	b.granted.Add(units)
	if b.config.Hard {
		b.kept = b.granted.Load()
	}
	return excess
}

// bookable returns how many units of n tokens can still be owed, and how many tokens cannot.
func (b *Bucket) bookable(now int64, n int) (units int64, excess int) {
	want := b.Units(min(n, maxDebt>>b.Shift))
	units = max(0, min(want, b.owable+b.Level(now)))
	return units, n - int(units>>b.Shift)
}

// Forgive cancels the debt, and returns how many tokens it was.
func (b *Bucket) Forgive(now int64) float64 {
	debt := -b.Level(now)
	if debt <= 0 {
		return 0
	}
	b.forfeited.Add(-debt)
	b.Fence()
	return b.Tokens(debt)
}

// Repay books n returned tokens against the debt, and returns how many of them it took.
func (b *Bucket) Repay(now int64, n int) int {
	back := min(b.Units(min(n, maxDebt>>b.Shift)), max(0, -b.Level(now)))
	b.credit(back)
	return int(back >> b.Shift)
}
