package fairtags

// A rule is one rule of the policy that a test build can leave out, to show that the tests
// notice. In every other build skip is constantly false and costs nothing.
type rule uint

const (
	ruleAlike  rule = iota // what is reserved is scaled down alike
	ruleSilent             // a silent row has no demand
	ruleClass              // a lower class keeps a twentieth
	ruleOther              // tags without a quota are one tag
	ruleHeld               // guarantees that a row holds are kept
)
