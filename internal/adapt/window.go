package adapt

// Totals count the tokens of calls of one processor by what the service made of them.
type Totals struct {
	Accepted, Refused, Overloaded int64
}

func (t Totals) minus(o Totals) Totals {
	return Totals{t.Accepted - o.Accepted, t.Refused - o.Refused, t.Overloaded - o.Overloaded}
}

const (
	// span is what a Report looks back on, at most, and minSpan at least: else one call would
	// be a high rate.
	span, minSpan = second, second / 4
	// resolution is the time between two samples.
	resolution = second / 32
	// activeFor is how long a processor that has made a call is one that makes calls.
	activeFor = 10 * second
)

// A Window makes a Report of running totals: the rates of the last second, to a
// thirtieth of it, so that it does not matter how often a processor reports. Of calls that
// were refused only those of one generation count. The zero Window is empty. It is not safe for
// concurrent use.
type Window struct {
	samples []sample // by rising time: the totals from that time on
	began   sample   // when the generation began
	active  bool     // a call was ever seen
	last    int64    // when the last call was seen
}

type sample struct {
	at     int64
	totals Totals
}

// Start begins another generation: what was refused until now does not count any more.
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
	if old := w.until(now - span); old > 0 {
		w.samples = append(w.samples[:0], w.samples[old:]...)
	}
	w.samples = append(w.samples, sample{now, t})
}

// until returns the last sample that is not after a time, or the first.
func (w *Window) until(at int64) int {
	i := 0
	for i+1 < len(w.samples) && w.samples[i+1].at <= at {
		i++
	}
	return i
}

// Active tells whether the processor made calls in the last ten seconds.
func (w *Window) Active(now int64) bool { return w.active && now-w.last <= activeFor }

// Report returns the rates at now as parts of a rate in tokens per second, which is above 0.
func (w *Window) Report(of float64, generation, now int64) Report {
	r := Report{Generation: generation}
	if len(w.samples) == 0 {
		return r
	}
	newest := w.samples[len(w.samples)-1].totals
	since := w.samples[w.until(now-span)]
	since.at = max(since.at, now-span)
	rate := func(n, from int64) int64 {
		return int64(max(0, min(float64(n)/(of*float64(max(now-from, minSpan))/second)*Whole, maxRate)))
	}
	r.Accepted = rate(newest.minus(since.totals).Accepted, since.at)
	if w.began.at > since.at {
		since = w.began
	}
	d := newest.minus(since.totals)
	r.Refused, r.Overloaded = rate(d.Refused, since.at), rate(d.Overloaded, since.at)
	return r
}
