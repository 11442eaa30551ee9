package backoff

// Totals count the tokens of one processor's calls by the service's response.
type Totals struct {
	Accepted, Refused, Overloaded int64
}

func (t Totals) minus(o Totals) Totals {
	return Totals{t.Accepted - o.Accepted, t.Refused - o.Refused, t.Overloaded - o.Overloaded}
}

// Plus returns the sum of both.
func (t Totals) Plus(o Totals) Totals {
	return Totals{t.Accepted + o.Accepted, t.Refused + o.Refused, t.Overloaded + o.Overloaded}
}

const (
	// A Report covers span, or as long as a few calls take, but at most longest. It covers at least shortest: else one call would be a high
	// rate.
	span, shortest, longest = second, second / 4, 30 * second
	few                     = 4
	// resolution is the time between two samples.
	resolution = second / 32
	// activeFor is how long a processor counts as active after a call.
	activeFor = 10 * second
)

// A Tally counts the responses to one processor's calls, for one law. It converts the totals to a Report: the rates of the last second, to a
// thirtieth of it, or of the last few calls if they are rarer. So it does not matter how often a processor reports. Refusals count of calls
// granted since the Tally began, unless the lag of a cut is not over. The zero Tally is empty. It is not safe for concurrent use.
type Tally struct {
	totals   Totals
	samples  []sample // by rising time: the totals from that time on
	began    sample   // when it began last
	settling bool
	active   bool  // there was a call
	last     int64 // time of the last call
}

type sample struct {
	at     int64
	totals Totals
}

// Begin starts again: refusals of calls granted from now on count. While settling, until the lag of a cut is over, none count.
func (t *Tally) Begin(now int64, settling bool) {
	t.add(now, t.totals)
	t.settling, t.began = settling, sample{now, t.totals}
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
	t.add(now, t.totals.Plus(calls))
	return calls.Refused+calls.Overloaded > 0
}

// add adds the totals at each change. They begin at 0 and never fall.
func (t *Tally) add(now int64, totals Totals) {
	if len(t.samples) == 0 {
		t.samples = append(t.samples, sample{at: now})
	}
	n := len(t.samples)
	if totals == t.samples[n-1].totals {
		return
	}
	t.totals = totals
	now = max(now, t.samples[n-1].at)
	t.active, t.last = true, now
	if n > 1 && now-t.samples[n-2].at < resolution {
		t.samples[n-1] = sample{now, totals}
		return
	}
	if old := t.base(now); old > 0 {
		t.samples = append(t.samples[:0], t.samples[old:]...)
	}
	t.samples = append(t.samples, sample{now, totals})
}

// base returns the sample that a report at now counts from.
func (t *Tally) base(now int64) int {
	return max(min(t.until(now-span), len(t.samples)-1-few), t.until(now-longest), 0)
}

// until returns the last sample that is not after a time, or the first.
func (t *Tally) until(at int64) int {
	i := 0
	for i+1 < len(t.samples) && t.samples[i+1].at <= at {
		i++
	}
	return i
}

// Active reports whether the processor made calls in the last ten seconds.
func (t *Tally) Active(now int64) bool { return t.active && now-t.last <= activeFor }

// Report returns the rates at now as parts of a rate in tokens per second, which is above 0.
func (t *Tally) Report(of float64, generation, now int64) Report {
	r := Report{Generation: generation}
	if len(t.samples) == 0 {
		return r
	}
	newest := t.samples[len(t.samples)-1].totals
	since := t.samples[t.base(now)]
	if since.at < now-span && t.until(now-span) == t.base(now) {
		since.at = now - span // nothing was counted in between
	}
	since.at = max(since.at, now-longest)
	least := int64(shortest)
	rate := func(n, from int64) int64 {
		return int64(max(0, min(float64(n)/(of*float64(max(now-from, least))/second)*Whole, maxRate)))
	}
	d := newest.minus(since.totals)
	r.Accepted = rate(d.Accepted, since.at)
	if t.began.at > since.at {
		// A refusal counts for at most one call in this time, even if it came at once.
		if calls := d.Accepted + d.Refused + d.Overloaded; calls > 0 {
			least = max(least, (now-since.at)/calls)
		}
		since = t.began
		d = newest.minus(since.totals)
	}
	r.Refused, r.Overloaded = rate(d.Refused, since.at), rate(d.Overloaded, since.at)
	return r
}
