package backoff

// A Tally counts what became of the calls of one processor, for one law. It knows which
// refusals count: those of calls that were granted since it began, unless the lag of a cut is
// not over. The zero Tally is empty. It is not safe for concurrent use.
type Tally struct {
	Window

	totals   Totals
	settling bool
}

// Begin begins anew: refusals count of calls that are granted from now on, or of none while
// settling, which is until the lag of a cut is over.
func (t *Tally) Begin(now int64, settling bool) {
	t.settling = settling
	t.Start(now, t.totals)
}

// Settling tells whether no refusal counts.
func (t *Tally) Settling() bool { return t.settling }

// Count books calls by what became of them. fresh: they were granted since the Tally began.
// It tells whether that was a refusal that counts.
func (t *Tally) Count(now int64, calls Totals, fresh bool) (refused bool) {
	if t.settling || !fresh {
		calls.Refused, calls.Overloaded = 0, 0
	}
	if calls == (Totals{}) {
		return false
	}
	t.totals = t.totals.Plus(calls)
	t.Add(now, t.totals)
	return calls.Refused+calls.Overloaded > 0
}
