package throttle

// A rule is one rule of the engine that a test build can leave out, to show that
// the simulation notices. See rules_on.go and rules_off.go: in every other build
// skip is constantly false and costs nothing. The rules of the bucket are in package bucket.
type rule uint

const (
	ruleDebtAtLeave rule = iota // debt is paid before the share is left to others
	rulePause                   // grant nothing while a pause holds
)
