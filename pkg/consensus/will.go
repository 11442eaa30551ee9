package consensus

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Will is what a process leaves behind for the next one under its ID: how to name
// its death, and how long its share took to earn what it owed.
type Will struct {
	driver.Death
	Owes time.Duration `json:"owes"`
}

// A Testament is what processes under one ID of one pool leave behind in a place of
// their own, such as a file: the wills of earlier processes that no store knows of yet, and
// that of the one that holds the place. Whoever holds the place, and nobody else, may
// write to it; and it is held until its holder leaves or is dead. So all that stands
// there when somebody gets hold of it is of processes that draw no more.
type Testament struct {
	Wills []Will // the oldest first, at most MaxDead
}

// Inherit returns the wills for a process that holds the place, nil for one that does not.
func (t *Testament) Inherit(holds bool) []Will {
	if !holds {
		return nil
	}
	return slices.Clone(t.Wills)
}

// Write puts down the holder's will behind those that it has inherited and that are
// not settled. Of too many the oldest are left out.
func (t *Testament) Write(inherited []Will, own Will) {
	wills := append(slices.Clone(inherited), own)
	t.Wills = wills[max(0, len(wills)-driver.MaxDead):]
}

// A legacy is a Will that a Processor has inherited: its death is named from then on.
type legacy struct {
	driver.Death
	due time.Duration
}

// Inherit tells the processor, once for each incarnation, of processes under its ID that are
// dead. The next requests name their deaths, each as soon as what was owed would have been earned
// if the process had left instead, until the store has answered. What would take
// longer than a claim stays is left to the removal.
func (p *Processor) Inherit(now time.Duration, wills []Will) {
	for _, w := range wills {
		known := slices.ContainsFunc(p.legacies, func(l legacy) bool { return l.Incarnation == w.Incarnation })
		if known || w.Incarnation == p.incarnation || w.Owes > Removal(MaxLease) || w.Validate() != nil {
			continue
		}
		p.legacies = append(p.legacies, legacy{w.Death, now + w.Owes})
	}
	p.legacies = p.legacies[max(0, len(p.legacies)-driver.MaxDead):]
}

// deaths are those that are to be named at now.
func (p *Processor) deaths(now time.Duration) (dead []driver.Death) {
	for _, l := range p.legacies {
		if l.due <= now {
			dead = append(dead, l.Death)
		}
	}
	return dead
}

// bequeathed notes that the store has recorded the deaths that the newest request named.
func (p *Processor) bequeathed() {
	for _, d := range p.sent.Dead {
		p.legacies = slices.DeleteFunc(p.legacies, func(l legacy) bool { return l.Incarnation == d.Incarnation })
		p.tookOver = true
	}
}

// Settled tells whether the store knows of all deaths that the processor has inherited, so
// that nothing need be kept of them.
func (p *Processor) Settled() bool { return len(p.legacies) == 0 }

// Will is what this processor leaves behind if it dies from now on, owing so much. It
// is to be put down before the request goes out that was made last.
func (p *Processor) Will(owes time.Duration) Will {
	return Will{driver.Death{Incarnation: p.incarnation, Last: p.last, Unanswered: slices.Clone(p.unanswered)}, max(owes, 0)}
}
