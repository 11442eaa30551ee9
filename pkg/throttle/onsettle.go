package throttle

import "sync/atomic"

// A watched permit is settled with the result of f, or cancelled if that is negative.
type watched struct {
	Permit

	done atomic.Bool
	f    func(used int) int
}

func onSettle(p Permit, f func(used int) int) Permit {
	return Permit{n: p.n, by: &watched{Permit: p, f: f}}
}

func (w *watched) settle(_ int64, _, used int) {
	if !w.done.CompareAndSwap(false, true) {
		return
	}
	used = w.f(used)
	if w.by != nil {
		w.by.settle(w.pos, w.n, used)
	}
}

func (w *watched) report(_ int64, _ int, o Outcome) { w.Report(o) }
