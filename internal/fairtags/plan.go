package fairtags

// Terms are what the quotas say of one tag. Rates are in tokens per second.
type Terms struct {
	// Key names the tag. 0 is all tags without a quota of their own.
	Key uint64
	// Reserved comes first, Total is the most: +Inf when there is none. Limiting is what the called service
	// can take of this tag: +Inf when nothing is known.
	Reserved, Total, Limiting float64
	// Weight is above 0. Class 0 comes before 1.
	Weight float64
	Class  int
}

// A Row is what one processor tells of itself.
type Row struct {
	// Claim is what the store counts as used by it. Silent says that it has not been heard of for so
	// long that its demand counts no more, while its claim still does.
	Claim  float64
	Silent bool
	// Busy are its busiest tags. Rest is the demand of all others, of which RestReserved is within
	// what is reserved for them. The processor that asks names all its tags.
	Busy               []Busy
	Rest, RestReserved float64
	// Held are the guarantees of its last plan (Plan.Held). It counts for the processor that asks alone, and
	// without it all guarantees are new ones.
	Held []Busy
}

// Busy is what one tag asks for at one processor.
type Busy struct {
	Key  uint64
	Rate float64
}

// A Target is what one tag may use over the whole pool.
type Target struct {
	// Demand is what it asks for, Rate what it should get.
	Demand, Rate float64
	// Bound is what it could get if it asked for more and nobody else asked for anything: the larger of what is
	// reserved and the smaller of Total and Limiting, and at most the limit.
	Bound float64
	// By is what holds Rate there: "demand", "reserved", "total", "limiting", "class" or "limit".
	By string
}

// What holds a tag at its target.
const (
	ByDemand   = "demand"   // it gets all that it asks for
	ByReserved = "reserved" // it asks for more than what is reserved, and there is no more
	ByTotal    = "total"
	ByLimiting = "limiting"
	ByClass    = "class" // a class that comes first takes the rest
	ByLimit    = "limit"
)

// A Plan is a division of the limit.
type Plan struct {
	// Wants is what each row should ask for, in the order of the rows. That of a silent one is its claim.
	Wants []float64
	// Targets are those of the tags, and Own is what of each the processor that asks should get, in the order of
	// the terms.
	Targets []Target
	Own     []float64
	// Held is what of Own is guaranteed: the next plan keeps it, given as Row.Held.
	Held []Busy
	// Scale is 1, or by how much everything reserved is scaled down because the limit in force is below it.
	Scale float64
}
