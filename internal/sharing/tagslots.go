package sharing

// A SlotTagHolder is a Holder of calls in flight whose tags have quotas: its Terms have Slots and Quotas.
type SlotTagHolder interface {
	QuotaHolder

	// ReportSlots reports on every tag that has calls in flight, callers that wait, or slots granted, and on every one that had such since the
	// last report, by rising name. From then on no call of a tag begins beyond the report's InUse. The pool's clock is turn leases old, and
	// the processor has the place rank, from 0, among the pool's live processors.
	ReportSlots(turn int64, rank, live int) []TagSlotReport

	// GrantSlots puts the pool's answer to the last report in force. A tag that is not named keeps what it has been granted.
	GrantSlots(grants []TagSlotGrant)
}

// A TagSlotReport is an InFlight's report on one tag to its pool. Tags without a quota of their own, and draws without a tag, share the tag "".
type TagSlotReport struct {
	Tag string
	// Running is how many slots the tag's calls hold, and Demand how many it would use if it could: the most that were held and waited for at
	// once since the report before the last. Waiting is how many are waited for now.
	Running, Demand, Waiting int64
	// Total is how many slots the tag may have over the whole pool. 0: no bound; then it needs no grant, and InUse and Wanted are 0 or, for calls that
	// still count if it gets a total again, those of Running.
	Total int64
	// InUse is how many slots it uses at most until the next grant: those of Running, and those in which calls may still begin. Wanted is how
	// many it asks for in all.
	InUse, Wanted int64
	// Under says that its calls are those of another tag, too, which asks for the same slots of the limit.
	Under bool
}

// A TagSlotGrant is the pool's answer to a TagSlotReport.
type TagSlotGrant struct {
	Tag string
	// Bound says that Granted, Claimed and Demand are those of the store: how many slots the tag may use here, what all other processors claim
	// of it, and how many they would use if they could. Granted may be below Running: no call begins until so many have ended.
	Bound                    bool
	Granted, Claimed, Demand int64
	// Reserved is how many slots of this processor's share are reserved for the tag, and ReservedElsewhere how many of all others.
	Reserved, ReservedElsewhere float64
	// First is how many calls of the tag may come first here. It is Reserved, or more while other processors use fewer slots than are reserved
	// for the tag over the whole pool.
	First float64
	// Part is how many slots here the tag should have while others wait: a weight, not a bound. 0: unknown.
	Part float64
}
