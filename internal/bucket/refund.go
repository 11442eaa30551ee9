package bucket

// Refund credits what was not used of n tokens that a permit drew at position pos. It
// returns whether anything was credited.
//
// What was not used is credited only if at most one period's worth of tokens was
// granted since the permit was drawn. Every credit can be granted again, so this
// bounds what can be held back from one window and used in the next by one
// period's worth, whatever the calls do. A share that falls takes the same part of
// that with it, for good: otherwise every processor that the share comes round to
// could use a period's worth of its own. A hard limit has a stricter rule; see
// RefundHard.
func (b *Bucket) Refund(now, pos int64, n, used int) bool {
	end := pos + b.Units(n)
	period := max(b.period(b.seg.Lease.Share), b.seg.Capacity, b.Units(n))
	late := end < b.kept || (b.granted.Load()-pos)>>b.Shift > period>>b.Shift
	if !b.seg.Valid(now) || late {
		return false
	}
	back := min(b.Units(n-used), b.seg.Capacity-b.Level(now))
	if back <= 0 {
		return false
	}
	b.credit(back)
	return true
}

// RefundHard credits what a hard limit may of n units that a permit drew, its draw
// ending at position end of all grants. t.mu is held.
//
// At no moment since the draw has the bucket held more than it holds now and what
// was granted since: it has earned meanwhile, and either has lost nothing or has
// overflowed, and then this sum is the capacity or more. So if the sum and n more
// fit into the bucket, one that held n more all the time would not have overflowed.
// Neither would it with what was credited before: that is in what the bucket holds
// now. A change of share and a debt break the reasoning, and nothing that was
// drawn before them is credited; see Bucket.kept.
//
// The gate must be shut meanwhile, so that nothing is granted between the sum and the
// credit; a draw at that very moment is refused.
func (b *Bucket) RefundHard(now, end, n int64) {
	room := b.seg.Capacity - b.Level(now)
	since := b.granted.Load() - end
	room -= since >> b.Shift << b.Shift // less the fences among them
	if back := min(n, room); back > 0 && b.seg.Valid(now) {
		b.credit(back)
	}
}

// Credit books n tokens that are given back of no draw in particular, up to the capacity.
func (b *Bucket) Credit(now int64, n int) {
	if back := min(b.Units(min(n, maxDebt>>b.Shift)), b.seg.Capacity-b.Level(now)); back > 0 && b.seg.Valid(now) {
		b.credit(back)
	}
}

func (b *Bucket) credit(units int64) {
	b.credited += units
	b.forfeited.Add(-units)
}

// maxDebt is the most that any bucket can owe, in units: at least a year's worth of
// the whole limit.
const maxDebt = MaxUnits / 2

// Owe books n tokens of debt: what was used above a permit's cost. It returns how many of them it
// does not book, for no more than Config.Debt is owed.
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

// bookable is how many units of n tokens can be owed yet, and how many tokens cannot.
func (b *Bucket) bookable(now int64, n int) (units int64, excess int) {
	want := b.Units(min(n, maxDebt>>b.Shift))
	units = max(0, min(want, b.owable+b.Level(now)))
	return units, n - int(units>>b.Shift)
}

// Forgive forgets what is owed, and returns how many tokens that were.
func (b *Bucket) Forgive(now int64) float64 {
	debt := -b.Level(now)
	if debt <= 0 {
		return 0
	}
	b.forfeited.Add(-debt)
	b.Fence()
	return b.Tokens(debt)
}

// Repay books n tokens that are given back of what was owed, and returns how many of them were.
func (b *Bucket) Repay(now int64, n int) int {
	back := min(b.Units(min(n, maxDebt>>b.Shift)), max(0, -b.Level(now)))
	b.credit(back)
	return int(back >> b.Shift)
}
