package throttle

import "github.com/numaproj-contrib/numathrottle/internal/callmeter"

// withMeter is hook.WithMeter.
func withMeter(concurrency int) Option { return func(s *settings) { s.concurrency = concurrency } }

// measure makes the meter of a limit whose calls are to be measured.
func (o *options) measure(limit func() callmeter.Limit) {
	if o.concurrency > 0 {
		o.meter = callmeter.New(o.concurrency, limit)
	}
}

// metersOf is hook.Meters.
func metersOf(l Limiter) callmeter.Meters {
	if m, ok := unwrapTo[interface{ meters() callmeter.Meters }](l); ok {
		return m.meters()
	}
	return nil
}

func (o *options) meters() callmeter.Meters {
	if o.meter == nil {
		return nil
	}
	return callmeter.Meters{o.meter}
}

func (j *multi) meters() (all callmeter.Meters) {
	for i := range j.Children {
		all = append(all, metersOf(j.Children[i].Limiter)...)
	}
	return all
}

// podsWanted is hook.PodsWanted.
func podsWanted(l Limiter) (pods float64, ok bool) {
	if m := metersOf(l); len(m) == 1 {
		return m[0].Wanted()
	}
	return 0, false
}

func (t *Throttle) metered() callmeter.Limit {
	st := t.status()
	l := callmeter.Limit{Drawn: st.Granted - st.Returned, Share: st.Rate}
	for _, held := range t.WaitStats() {
		l.Held += held.Time
	}
	return l
}

func (f *InFlight) metered() callmeter.Limit {
	l := callmeter.Limit{Share: float64(f.Status().Slots), Slots: true}
	for _, held := range f.WaitStats() {
		l.Held += held.Time
	}
	return l
}
