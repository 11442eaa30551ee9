package throttle

// A rule is one rule of the engine that a test build can leave out, to show that
// the simulation notices. See rules_on.go and rules_off.go: in every other build
// skip is constantly false and costs nothing.
type rule uint

const (
	ruleLeaseAtDraw  rule = iota // compare clock and lease at each draw
	ruleStartsEmpty              // a processor that had no share starts with an empty bucket
	ruleFallClamps               // a share that falls takes its part of the bucket along
	ruleGiveBack                 // credit what is given back only while little was granted since
	ruleDebtAtLeave              // debt is paid before the share is left to others
	ruleHardClocks               // hard: the rate allows for clocks that run fast
	ruleHardWhole                // hard: no bucket is rounded up to one token
	ruleHardCollect              // hard: nobody collects more than the bucket holds
	rulePause                    // grant nothing while a pause holds
	ruleHardGiveBack             // hard: credit what is given back only if it would not have overflowed
)
