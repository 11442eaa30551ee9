package protocol

import (
	"slices"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A LastState is left by a process for its successor under its ID. It says how to name the death of the
// process, and how long its share took to earn its debt.
type LastState struct {
	driver.Death
	Owes time.Duration `json:"owes"`
}

// A TakeoverRecord is a place, such as a file, where processes under one ID of one pool leave their
// last states. It has the last states of earlier processes that no store knows of yet, and that of its holder.
// Only the holder may write to it, and holds it until it leaves or is dead. So the last states that a new
// holder finds there are of processes that draw no more.
type TakeoverRecord struct {
	LastStates []LastState // the oldest first, at most wire.MaxDead
}

// Inherit returns the last states for a process that holds the place, nil for one that does not.
func (t *TakeoverRecord) Inherit(holds bool) []LastState {
	if !holds {
		return nil
	}
	return slices.Clone(t.LastStates)
}

// Write stores the holder's will behind the inherited ones that are not settled. Of too many the
// oldest are left out.
func (t *TakeoverRecord) Write(inherited []LastState, own LastState) {
	lastStates := append(slices.Clone(inherited), own)
	t.LastStates = lastStates[max(0, len(lastStates)-wire.MaxDead):]
}

// A takeover is the part of a processor that takes over from dead processes under its ID.
type takeover struct {
	deaths []death // which the store does not know yet
	Done   bool    // the store knows of such deaths
}

// A death is that of a process whose Will was found. It is named from due on.
type death struct {
	driver.Death
	due time.Duration
}

// inherit takes last states as they were found at now by an incarnation; see Processor.Inherit.
func (t *takeover) inherit(now time.Duration, incarnation string, lastStates []LastState) {
	for _, w := range lastStates {
		known := slices.ContainsFunc(t.deaths, func(d death) bool { return d.Incarnation == w.Incarnation })
		if known || w.Incarnation == incarnation || w.Owes > wire.Removal(driver.MaxLease) || w.Validate() != nil {
			continue
		}
		t.deaths = append(t.deaths, death{w.Death, now + w.Owes})
	}
	t.deaths = t.deaths[max(0, len(t.deaths)-wire.MaxDead):]
}

func (*takeover) restart() {}

// report names the deaths that are due.
func (t *takeover) report(_ *core, now time.Duration, req *request) {
	for _, d := range t.deaths {
		if d.due <= now {
			req.Dead = append(req.Dead, d.Death)
		}
	}
}

// take notes that the store has recorded the deaths that the request named.
func (t *takeover) take(c *core, _ time.Duration, _ *driver.Answer) urgency {
	for _, d := range c.sent.Dead {
		t.deaths = slices.DeleteFunc(slices.Clone(t.deaths), func(o death) bool { return o.Incarnation == d.Incarnation })
		t.Done = true
	}
	return urgencyNone
}

// Inherit gives the processor, once for each incarnation, the last states of dead processes under its ID.
// The next requests name their deaths until the store has answered, each as soon as its debt would
// have been earned if the process had left instead. A debt that takes longer than a claim stays is
// left to the removal. The deaths are settled when the store knows of all: nothing need be kept of them.
func (p *Processor) Inherit(now time.Duration, lastStates []LastState) (settled bool) {
	p.Takeover.inherit(now, p.incarnation, lastStates)
	return len(p.Takeover.deaths) == 0
}

// LastState returns the last state of this processor if it dies from now on, owing so much. It must be stored
// before the newest request goes out. Calls in flight that begin after that may go on for any time at the called service, so a limit on them
// always owes: its share is not taken over at once.
func (p *Processor) LastState(owes time.Duration) LastState {
	if p.split.slots > 0 {
		owes = sharing.Never
	}
	return LastState{driver.Death{Incarnation: p.incarnation, Last: p.last, Unanswered: slices.Clone(p.unanswered)}, max(owes, 0)}
}
