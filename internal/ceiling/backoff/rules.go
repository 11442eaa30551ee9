package backoff

// A rule is one rule of the law that a test build can leave out, to show that the tests
// notice. See rules_on.go and rules_off.go: in every other build skip is constantly false.
type rule uint

const (
	ruleLag        rule = iota // one cut per lag, and for calls that were granted after it
	ruleBinding                // the ceiling rises only while it is what holds callers back
	ruleWorst                  // the worst processor is left out of the judgement
	ruleConfigured             // the ceiling is never above the configured limit
)
