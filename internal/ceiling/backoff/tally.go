package backoff

// A Tally counts the responses to one processor's calls, for one law. It knows which refusals count: those of calls granted since it began,
// unless the lag of a cut is not over. The zero Tally is empty. It is not safe for concurrent use.
type Tally struct {
	Window

	totals   Totals
	settling bool
}

// Begin starts again: refusals of calls granted from now on count. While settling, until the lag of a cut is over, none count.
func (t *Tally) Begin(now int64, settling bool) {
	t.settling = settling
	t.Start(now, t.totals)
}

// Settling reports whether no refusal counts.
func (t *Tally) Settling() bool { return t.settling }

// Count books calls by response. fresh: they were granted since the Tally began. It reports whether they include a refusal that counts.
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
