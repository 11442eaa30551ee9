package pooldoc

// A rule is one rule of documents that a test build can leave out, to show that the
// simulation notices. See rules_on.go and rules_off.go: in every other build skip is
// constantly false.
type rule uint

const (
	ruleReturn     rule = iota // give back the documents that the store has lost
	ruleReturnSeen             // pauses are given back only in the place of what was seen there
)
