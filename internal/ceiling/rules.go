package ceiling

// A rule is one rule of the law that a test build can leave out, to show that the
// simulation notices. See rules_on.go and rules_off.go: in every other build skip is
// constantly false.
type rule uint

const (
	ruleLowest rule = iota // of several configured limits the lowest is in force
	ruleHard               // no override raises a hard limit
	ruleResume             // a ramp of another clock goes on from where it stood
)
