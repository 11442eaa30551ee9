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

// A Window converts running totals to a Report: the rates of the last second, to a thirtieth of it, or of the last few calls if they are
// rarer. So it does not matter how often a processor reports. Of refused calls only those of one generation count. The zero Window is
// empty. It is not safe for concurrent use.
type Window struct {
	samples []sample // by rising time: the totals from that time on
	began   sample   // when the generation began
	active  bool     // there was a call
	last    int64    // time of the last call
}

type sample struct {
	at     int64
	totals Totals
}

// Start begins another generation: earlier refusals no longer count.
func (w *Window) Start(now int64, t Totals) {
	w.Add(now, t)
	w.began = sample{now, t}
}

// Add adds the totals at each change. They begin at 0 and never fall.
func (w *Window) Add(now int64, t Totals) {
	if len(w.samples) == 0 {
		w.samples = append(w.samples, sample{at: now})
	}
	n := len(w.samples)
	if t == w.samples[n-1].totals {
		return
	}
	now = max(now, w.samples[n-1].at)
	w.active, w.last = true, now
	if n > 1 && now-w.samples[n-2].at < resolution {
		w.samples[n-1] = sample{now, t}
		return
	}
	if old := w.base(now); old > 0 {
		w.samples = append(w.samples[:0], w.samples[old:]...)
	}
	w.samples = append(w.samples, sample{now, t})
}

// base returns the sample that a report at now counts from.
func (w *Window) base(now int64) int {
	return max(min(w.until(now-span), len(w.samples)-1-few), w.until(now-longest), 0)
}

// until returns the last sample that is not after a time, or the first.
func (w *Window) until(at int64) int {
	i := 0
	for i+1 < len(w.samples) && w.samples[i+1].at <= at {
		i++
	}
	return i
}

// Active reports whether the processor made calls in the last ten seconds.
func (w *Window) Active(now int64) bool { return w.active && now-w.last <= activeFor }

// Report returns the rates at now as parts of a rate in tokens per second, which is above 0.
func (w *Window) Report(of float64, generation, now int64) Report {
	r := Report{Generation: generation}
	if len(w.samples) == 0 {
		return r
	}
	newest := w.samples[len(w.samples)-1].totals
	since := w.samples[w.base(now)]
	if since.at < now-span && w.until(now-span) == w.base(now) {
		since.at = now - span // nothing was counted in between
	}
	since.at = max(since.at, now-longest)
	least := int64(shortest)
	rate := func(n, from int64) int64 {
		return int64(max(0, min(float64(n)/(of*float64(max(now-from, least))/second)*Whole, maxRate)))
	}
	d := newest.minus(since.totals)
	r.Accepted = rate(d.Accepted, since.at)
	if w.began.at > since.at {
		// A refusal counts for at most one call in this time, even if it came at once.
		if calls := d.Accepted + d.Refused + d.Overloaded; calls > 0 {
			least = max(least, (now-since.at)/calls)
		}
		since = w.began
		d = newest.minus(since.totals)
	}
	r.Refused, r.Overloaded = rate(d.Refused, since.at), rate(d.Overloaded, since.at)
	return r
}
