package throttle

// Statuses returns what each limiter of the All is doing, if all of them are a *Throttle
// and a draw of n takes n tokens from each; otherwise nil: of slots, of weighed costs and of
// limiters of other packages a Status does not tell what a draw would get.
func (j *multi) Statuses() []Status {
	all := make([]Status, 0, len(j.children))
	for _, p := range j.children {
		if p.attached {
			continue
		}
		t, ok := p.limiter.(*Throttle)
		if l, tagged := p.limiter.(*tagView); tagged {
			t, ok = l.t, true
		}
		if !ok || len(p.costs) > 0 {
			return nil
		}
		all = append(all, t.Status())
	}
	return all
}
