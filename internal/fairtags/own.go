package fairtags

// own divides one row's amount among its tags. First come the guarantees that it held before, then the new ones, then the rest of its tags'
// rates. The remainder is divided by weight. So a new tag takes no guarantee from an old one, while the row has yet to get more. A tag that
// is held by its total gets no more than its part of that: tokens that a row draws ahead of it are missing elsewhere.
//
// A row that has nothing yet divides the amount that it should ask for: only the proportions count.
func (d *division) own(plan *Plan, self int) {
	left := rate(d.rows[self].Claim)
	if left == 0 {
		left = plan.Wants[self]
	}
	n := len(d.tags) // those that the caller does not name take their part
	held := d.held(self)
	own, kept, fresh, others, spare := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]span, n)
	for i := range n {
		t := &d.tags[i]
		asked := t.at(self)
		if asked == 0 {
			continue
		}
		guaranteed, gets := min(asked, t.level(t.lo)), min(asked, t.level(t.x))
		kept[i] = min(guaranteed, held[i])
		fresh[i] = guaranteed - kept[i]
		others[i] = max(gets-guaranteed, 0)
		if most := min(t.Total, t.Limiting); t.x < most*near { // others hold it, and not what its quota says
			spare[i] = span{hi: max(min(asked, most)-gets, 0), weight: t.Weight}
		}
	}
	left -= give(own, kept, left)
	left -= give(own, fresh, left)
	named := own[:len(plan.Own)]
	for i, rate := range named {
		if rate > 0 {
			plan.Held = append(plan.Held, Busy{d.tags[i].Key, rate})
		}
	}
	left -= give(own, others, left)
	at := level(spare, max(left, 0))
	for i, s := range spare {
		own[i] += s.at(at)
	}
	copy(plan.Own, named)
}

// held returns the row's amount of each tag by its last plan.
func (d *division) held(row int) []float64 {
	held := make([]float64, len(d.tags))
	for _, b := range d.rows[row].Held {
		if i, known := d.index[b.Key]; known {
			held[i] = max(held[i], rate(b.Rate))
		}
	}
	return held
}

// give adds asked to own, scaled down alike when there is not enough, and returns the sum.
func give(own, asked []float64, left float64) float64 {
	sum := 0.0
	for _, a := range asked {
		sum += a
	}
	if sum == 0 {
		return 0
	}
	scale := min(max(left, 0)/sum, 1)
	for i, a := range asked {
		own[i] += a * scale
	}
	return sum * scale
}

// at returns the demand of one row.
func (t *tag) at(row int) float64 {
	for _, p := range t.parts {
		if p.row == row {
			return p.rate
		}
	}
	return 0
}
