package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Fault is a kind of fault.
type Fault uint8

// The faults. Those from FaultLost on happen to single messages.
const (
	FaultJoin      Fault = iota // a processor joins
	FaultLeave                  // one leaves
	FaultCrash                  // one dies, and stays dead or restarts under the same ID
	FaultTwin                   // a second process starts under an ID in use
	FaultStall                  // a process is stopped (SIGSTOP), up to three leases
	FaultSuspend                // a machine is suspended: its monotonic clock stands still
	FaultClone                  // a machine is cloned while it runs
	FaultCutUp                  // partition, from the processor to the store
	FaultCutDown                // partition, from the store to the processor
	FaultCutBoth                // partition in both directions
	FaultDown                   // the store is down and comes back as it was
	FaultHang                   // the store hangs, then serves the requests that came in the meantime
	FaultStep                   // the store's clock steps by hours
	FaultRates                  // every clock changes its rate
	FaultWipe                   // the store comes back empty, with another identity
	FaultFlush                  // the store is emptied and keeps its identity
	FaultFailover               // an older copy of the record takes over, with another identity
	FaultRollback               // an older copy takes over and keeps the identity
	FaultIdentity               // another server takes over, with the whole record
	FaultLost                   // a message is lost
	FaultAgain                  // a message is doubled
	FaultLate                   // a message is delayed by up to a minute
	FaultOvertaken              // a message overtakes the one before
	FaultLimit                  // the limit is overridden, or another one rolled out
	numFaults
	numDrawn   = FaultLimit
	numPlanned = FaultLost // the faults that are injected one by one
)

var faultNames = [numFaults]string{
	"join", "leave", "crash", "twin", "stall", "suspend", "clone", "cut-up", "cut-down", "cut-both", "down", "hang",
	"step", "rates", "wipe", "flush", "failover", "rollback", "identity", "lost", "again", "late", "overtaken",
	"limit",
}

// String returns the fault's name.
func (f Fault) String() string { return faultNames[f] }

// A Met is a state in which a fault may happen.
type Met uint8

// The states of a share, and of the pool.
const (
	MetValid    Met = iota // a share with most of its lease left
	MetExpiring            // a share whose lease was not renewed on time
	MetLowered             // a share below its claim: the store does not know yet that the rest is unused
	MetFrozen              // a frozen pool
	numMet
)

var metNames = [numMet]string{"valid", "expiring", "lowered", "frozen"}

// String returns the state's name.
func (m Met) String() string { return metNames[m] }

// Counters count the events of one run or many.
type Counters struct {
	Runs, Events, Syncs uint64
	// Answers counts by driver.Status, Freezes by cause.
	Answers [driver.Behind + 1]uint64
	Freezes [5]uint64
	// Faults counts by kind, and FaultMet how often each kind happened in each state.
	Faults   [numFaults]uint64
	FaultMet [numFaults][numMet]uint64
	// Ghosts counts how often a late packet of a removed process lifted the claims above the whole. Nobody uses them.
	Ghosts uint64
	// Peak is the largest sum of shares in use.
	Peak driver.Share
	// Granted counts calls, Windows holds the worst window of each length.
	Granted uint64
	Windows [len(windowLengths)]Window
	// Hard is the worst second of a hard limit, and Lowered the worst one with an override below it. Changed is the worst window in which
	// another limit changed, or less than a removal time before it.
	Hard, Lowered, Changed Window
	// Refused counts refused changes of the limit, and Ramping checks that saw a ceiling below the limit.
	Refused, Ramping uint64
	// Reserves counts requests for slots, Permits the granted slots, and Returned those given back. Mixed counts moments with both shares
	// in use and valid permits.
	Reserves, Permits, Returned, Mixed uint64
	// Alone counts how often a process continued without the store, and Together those times at which all had lost the store alike.
	Alone, Together uint64
	// Pauses counts pauses of pools, and Receipts requests that acknowledge one.
	Pauses, Receipts uint64
	// Deaths counts granted requests that named a death.
	Deaths uint64
	// TagUsed counts used tokens of tags, and Gushes how often all callers of tags continued at once. TagSpent counts draws at the end of a
	// budget, and TagClones tags that a clone copied.
	TagUsed, Gushes, TagSpent, TagClones uint64
	// Tags are the worst windows of a tag, by length.
	Tags [len(windowLengths)]Window
	// SlotCalls counts calls in flight that began, SlotsFull those that took the last slot of their tag's total, and SlotChanges changes of totals.
	SlotCalls, SlotsFull, SlotChanges uint64
	// SlotExcused counts calls in flight of processes that did not reach the store for a removal time.
	SlotExcused uint64
	// SlotWait is how long a tag below its reservation has waited, SlotIdle how long a slot was free while somebody waited who may have it: the
	// longest, in sync intervals of a healthy pool. Jain is the least index of a division.
	SlotWait, SlotIdle, Jain float64
	// Nearest is the maximum of spacing divided by the distance of two slots; 1 is exactly the spacing.
	Nearest float64
}

// A Window is the one of its length with the most calls, relative to the bound.
type Window struct{ Ratio, Used, Allowed float64 }

// freezeCauses are the causes in the order of Counters.Freezes.
var freezeCauses = [...]driver.FreezeCause{
	driver.FreezeNone, driver.FreezeNewRecord, driver.FreezeIdentity, driver.FreezeRollback, driver.FreezeLostRow,
}

// Add adds the counters of another run.
func (c *Counters) Add(d *Counters) {
	c.Runs, c.Events, c.Syncs = c.Runs+d.Runs, c.Events+d.Events, c.Syncs+d.Syncs
	c.Deaths += d.Deaths
	c.Pauses, c.Receipts = c.Pauses+d.Pauses, c.Receipts+d.Receipts
	c.Alone, c.Together = c.Alone+d.Alone, c.Together+d.Together
	for i, n := range d.Answers {
		c.Answers[i] += n
	}
	for i, n := range d.Freezes {
		c.Freezes[i] += n
	}
	for f := range d.Faults {
		c.Faults[f] += d.Faults[f]
		for m, n := range d.FaultMet[f] {
			c.FaultMet[f][m] += n
		}
	}
	c.Ghosts += d.Ghosts
	c.Peak = max(c.Peak, d.Peak)
	c.Granted += d.Granted
	for i := range d.Windows {
		if d.Windows[i].Ratio > c.Windows[i].Ratio {
			c.Windows[i] = d.Windows[i]
		}
	}
	if d.Hard.Ratio > c.Hard.Ratio {
		c.Hard = d.Hard
	}
	if d.Lowered.Ratio > c.Lowered.Ratio {
		c.Lowered = d.Lowered
	}
	if d.Changed.Ratio > c.Changed.Ratio {
		c.Changed = d.Changed
	}
	c.Refused, c.Ramping = c.Refused+d.Refused, c.Ramping+d.Ramping
	c.Reserves, c.Permits, c.Returned, c.Mixed = c.Reserves+d.Reserves, c.Permits+d.Permits, c.Returned+d.Returned, c.Mixed+d.Mixed
	c.Nearest = max(c.Nearest, d.Nearest)
	c.SlotCalls, c.SlotsFull, c.SlotChanges = c.SlotCalls+d.SlotCalls, c.SlotsFull+d.SlotsFull, c.SlotChanges+d.SlotChanges
	c.SlotExcused += d.SlotExcused
	c.SlotWait, c.SlotIdle = max(c.SlotWait, d.SlotWait), max(c.SlotIdle, d.SlotIdle)
	if d.Jain > 0 && (c.Jain == 0 || d.Jain < c.Jain) {
		c.Jain = d.Jain
	}
	c.TagUsed, c.Gushes = c.TagUsed+d.TagUsed, c.Gushes+d.Gushes
	c.TagSpent, c.TagClones = c.TagSpent+d.TagSpent, c.TagClones+d.TagClones
	for i := range d.Tags {
		if d.Tags[i].Ratio > c.Tags[i].Ratio {
			c.Tags[i] = d.Tags[i]
		}
	}
}

// String returns a table of the counters.
func (c *Counters) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "runs %d, events %d, syncs %d, largest sum of shares %v\nanswers:", c.Runs, c.Events, c.Syncs, c.Peak)
	for s, n := range c.Answers {
		fmt.Fprintf(&b, " %s %d", driver.Status(s), n)
	}
	fmt.Fprintf(&b, "\ncalls %d, worst window of what the bound allows:", c.Granted)
	for i, win := range c.Windows {
		fmt.Fprintf(&b, " %v %.4f (%g of %.6g)", windowLengths[i], win.Ratio, win.Used, win.Allowed)
	}
	fmt.Fprintf(&b, "\nworst second of a hard limit: %.4f (%g of %g), and of one that is lowered: %.4f (%g of %g)",
		c.Hard.Ratio, c.Hard.Used, c.Hard.Allowed, c.Lowered.Ratio, c.Lowered.Used, c.Lowered.Allowed)
	fmt.Fprintf(&b, "\nworst window with a changed limit: %.4f (%g of %.6g); changes refused %d, looks at a ceiling below the limit %d",
		c.Changed.Ratio, c.Changed.Used, c.Changed.Allowed, c.Refused, c.Ramping)
	fmt.Fprintf(&b, "\npermits %d by %d requests, given back %d, nearest %.6f spacings, beside shares %d times",
		c.Permits, c.Reserves, c.Returned, c.Nearest, c.Mixed)
	fmt.Fprintf(&b, "\npauses %d, requests with a receipt %d; went on without the store %d times, %d when all lost it",
		c.Pauses, c.Receipts, c.Alone, c.Together)
	b.WriteString("\nfreezes:")
	for i, n := range c.Freezes[1:] {
		fmt.Fprintf(&b, " %s %d", freezeCauses[i+1], n)
	}
	fmt.Fprintf(&b, "\n%-10s %12s", "fault", "times")
	for _, m := range metNames {
		fmt.Fprintf(&b, " %12s", m)
	}
	for f := range c.Faults {
		fmt.Fprintf(&b, "\n%-10s %12d", Fault(f), c.Faults[f])
		for _, n := range c.FaultMet[f] {
			fmt.Fprintf(&b, " %12d", n)
		}
	}
	return b.String()
}

func freezeIndex(cause driver.FreezeCause) int {
	return max(slices.Index(freezeCauses[:], cause), 0)
}
