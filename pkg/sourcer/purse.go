package sourcer

import "github.com/numaproj-contrib/numathrottle/pkg/throttle"

// A note is a permit that may be partly used. It is settled when the last token is used, or when the rest is given back.
type note struct {
	permit throttle.Permit
	used   int
}

func (n note) left() int { return n.permit.N() - n.used }

// A purse holds tokens that were drawn and not yet used for reading, oldest first.
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

// spend takes used tokens out, the oldest first. Use beyond the whole purse is debt.
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

// trim gives back the tokens above most, the newest first. A note goes back as a whole, so less than most may be left.
func (p purse) trim(most int) purse {
	for over := p.n() - most; over > 0; over = p.n() - most {
		if last := p[len(p)-1]; last.used > 0 {
			last.permit.Settle(last.used)
		} else {
			last.permit.Cancel() // no read was made with it
		}
		p = p[:len(p)-1]
	}
	return p
}
