package limit

// A Reason says why a draw was refused or has to wait.
type Reason string

// The reasons. Package throttle explains them.
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

// A reasonEntry describes one reason.
type reasonEntry struct {
	reason Reason
	// final: a later try of the same draw also fails.
	final bool
}

// reasons is the table of reasons, in the order in which they are reported.
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

// reasonCount is the number of reasons with their own count.
const reasonCount = len(reasons)

// Reasons returns the reasons with their own count, in a fixed order.
func Reasons() []Reason {
	list := make([]Reason, 0, reasonCount)
	for _, e := range reasons {
		list = append(list, e.reason)
	}
	return list
}

// Index returns the index of r in Reasons. Reasons that a Sharer defines itself count as [ReasonOther], the last one.
func (r Reason) Index() int {
	for i := range reasons {
		if reasons[i].reason == r {
			return i
		}
	}
	return reasonCount - 1
}

// Listed reports whether r has its own count.
func (r Reason) Listed() bool { return reasons[r.Index()].reason == r }

// Final reports whether a later try of the same draw also fails: its limiter is closed, or its cost is too large.
func (r Reason) Final() bool { return reasons[r.Index()].final }
