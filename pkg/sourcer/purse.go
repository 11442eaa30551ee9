package sourcer

import "github.com/numaproj-contrib/numathrottle/pkg/throttle"

// A note is a permit of which some tokens may be used already. It is settled when the
// last is used, or when the rest is given back.
type note struct {
	permit throttle.Permit
	used   int
}

func (n note) left() int { return n.permit.N() - n.used }

// A purse is tokens that were drawn and that nothing has been read for, oldest first.
//
// Invariant: each note has tokens left.
type purse []note

func (p purse) n() int {
	n := 0
	for _, c := range p {
		n += c.left()
	}
	return n
}

func (p purse) add(permit throttle.Permit) purse {
	if permit.N() == 0 {
		return p
	}
	return append(p, note{permit: permit})
}

// spend takes used tokens out, the oldest first. What was used above all that there are is
// debt.
func (p purse) spend(used int) purse {
	for len(p) > 0 && used > 0 {
		c := &p[0]
		if len(p) > 1 && used >= c.left() || used == c.left() {
			used -= c.left()
			c.permit.Settle(c.permit.N())
			p = p[1:]
			continue
		}
		if c.used += used; c.left() > 0 {
			return p
		}
		c.permit.Settle(c.used)
		return nil
	}
	return p
}

// trim gives back what is above most, the newest first. A note goes back as a whole, so
// that less than most may be left.
func (p purse) trim(most int) purse {
	for over := p.n() - most; over > 0; over = p.n() - most {
		last := p[len(p)-1]
		last.permit.Settle(last.used)
		p = p[:len(p)-1]
	}
	return p
}
