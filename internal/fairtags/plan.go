package fairtags

// Terms are one tag's rates, weight and class. Rates are in tokens per second.
type Terms struct {
	// Key names the tag. 0 is all tags without a quota of their own.
	Key uint64
	// Reserved comes first, Total is the most: +Inf when there is none. Limiting is the called service's limit for this tag: +Inf when
	// nothing is known.
	Reserved, Total, Limiting float64
	// Weight is above 0. Class 0 comes before 1.
	Weight float64
	Class  int
}

// A Row is one processor's report.
type Row struct {
	// Claim is the processor's use in the store's count. Silent says that no report has come for so long that its demand counts no more,
	// while its claim still does.
	Claim  float64
	Silent bool
	// Busy lists its busiest tags. Rest is the demand of all others, RestReserved the part of that within their reservations. The processor
	// that asks names all its tags.
	Busy               []Busy
	Rest, RestReserved float64
	// Held are the guarantees of its last plan (Plan.Held). It counts only for the processor that asks; without it all guarantees are new
	// ones.
	Held []Busy
}

// Busy is the demand of one tag at one processor.
type Busy struct {
	Key  uint64
	Rate float64
}

// A Target is the amount that one tag may use over the whole pool.
type Target struct {
	// Demand is the tag's demand, Rate its target.
	Demand, Rate float64
	// Bound is the highest possible Rate, with more demand and no other tags. It is the larger of the reservation and the smaller of Total
	// and Limiting, and at most the limit.
	Bound float64
	// By is the reason for Rate: "demand", "reserved", "total", "limiting", "class" or "limit".
	By string
}

// Reasons for a target.
const (
	ByDemand   = "demand"   // it gets all that it asks for
	ByReserved = "reserved" // it asks for more than its reservation, and there is no more
	ByTotal    = "total"
	ByLimiting = "limiting"
	ByClass    = "class" // a class that comes first takes the rest
	ByLimit    = "limit"
)

// A Plan is a division of the limit.
type Plan struct {
	// Wants lists the amount that each row should ask for, in the order of the rows. That of a silent one is its claim.
	Wants []float64
	// Guaranteed lists the part of Wants that is guaranteed to tags.
	Guaranteed []float64
	// Targets are those of the tags. Own is the amount of each that the processor that asks should get. Both are in the order of the terms.
	Targets []Target
	Own     []float64
	// Held is the guaranteed part of Own: the next plan keeps it, given as Row.Held.
	Held []Busy
	// Scale is 1, or the factor for all reservations because the limit in force is below their sum.
	Scale float64
}
