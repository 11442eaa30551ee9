package throttle

// A rule is one rule of the engine that a test build can leave out, to show that
// the simulation notices. See rules_on.go and rules_off.go: in every other build
// skip is constantly false and costs nothing. Packages bucket and gate have rules of their own.
type rule uint

const ruleDebtAtLeave rule = iota // debt is paid before the share is left to others
