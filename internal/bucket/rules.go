package bucket

// A rule is one rule of the bucket that a test build can leave out, to show that the tests
// notice. In every other build skip is constantly false and costs nothing.
type rule uint

const (
	ruleLeaseAtDraw  rule = iota // compare clock and lease at each draw
	ruleStartsEmpty              // a processor that had no share starts with an empty bucket
	ruleFallClamps               // a share that falls takes its part of the bucket along
	ruleGiveBack                 // credit what is given back only while little was granted since
	ruleHardClocks               // hard: the rate allows for clocks that run fast
	ruleHardWhole                // hard: no bucket is rounded up to one token
	ruleHardCollect              // hard: nobody collects more than the bucket holds
	ruleHardGiveBack             // hard: credit what is given back only if it would not have overflowed
)
