package limit

// A Reason says why a draw was refused or has to wait.
type Reason string

// The reasons. Package throttle says what each of them means.
const (
	ReasonLimit         Reason = "limit"
	ReasonNoShare       Reason = "no_share"
	ReasonFrozen        Reason = "frozen"
	ReasonShareTooSmall Reason = "share_too_small"
	ReasonStoreLost     Reason = "store_lost"
	ReasonUnreadable    Reason = "unreadable"
	ReasonReplaced      Reason = "replaced"
	ReasonTooLarge      Reason = "too_large"
	ReasonInFlight      Reason = "in_flight"
	ReasonSlotsTaken    Reason = "slots_taken"
	ReasonAdaptive      Reason = "adaptive"
	ReasonOther         Reason = "other"
	ReasonPause         Reason = "pause"
	ReasonQuota         Reason = "quota"
	ReasonBudget        Reason = "budget"
	ReasonClass         Reason = "class"
	ReasonNames         Reason = "names"
	ReasonClosed        Reason = "closed"
)

// A reasonEntry is what is known of one reason.
type reasonEntry struct {
	reason Reason
	// final: a later try of the same draw fails too.
	final bool
}

// reasons is the one table of reasons. Their order is the order in which they are told.
var reasons = [...]reasonEntry{
	{reason: ReasonLimit},
	{reason: ReasonNoShare},
	{reason: ReasonFrozen},
	{reason: ReasonShareTooSmall},
	{reason: ReasonStoreLost},
	{reason: ReasonReplaced},
	{reason: ReasonTooLarge, final: true},
	{reason: ReasonInFlight},
	{reason: ReasonSlotsTaken},
	{reason: ReasonUnreadable},
	{reason: ReasonAdaptive},
	{reason: ReasonPause},
	{reason: ReasonQuota},
	{reason: ReasonBudget},
	{reason: ReasonClass},
	{reason: ReasonNames},
	{reason: ReasonClosed, final: true},
	{reason: ReasonOther},
}

// ReasonCount is how many reasons are counted by themselves.
const ReasonCount = len(reasons)

// Reasons returns the reasons that are counted by themselves, in a fixed order.
func Reasons() []Reason {
	list := make([]Reason, 0, ReasonCount)
	for _, e := range reasons {
		list = append(list, e.reason)
	}
	return list
}

// ReasonAt is the reason at a place in Reasons.
func ReasonAt(i int) Reason { return reasons[i].reason }

// Index is the place of r in Reasons. A Sharer may give any number of reasons of its own:
// these count as ReasonOther, which is the last.
func (r Reason) Index() int {
	for i := range reasons {
		if reasons[i].reason == r {
			return i
		}
	}
	return ReasonCount - 1
}

// Listed tells whether r is counted by itself.
func (r Reason) Listed() bool { return reasons[r.Index()].reason == r }

// Final tells whether a later try of the same draw fails too: its limiter is closed, or its
// cost is too large.
func (r Reason) Final() bool { return reasons[r.Index()].final }
