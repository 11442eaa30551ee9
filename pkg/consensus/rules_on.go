//go:build numathrottle_mutants

package consensus

import "github.com/numaproj-contrib/numathrottle/internal/failpoints"

var board = failpoints.New("consensus", map[string]failpoints.Rule{
	"late-answer":     {Number: int(ruleLateAnswer), Says: "take only the answer to the newest request"},
	"broken-lease":    {Number: int(ruleBrokenLease), Says: "a share that lapsed since it was reported is not renewed"},
	"lease-from-send": {Number: int(ruleLeaseFromSend), Says: "the lease runs from the send, not from the receipt"},
	"draw-check":      {Number: int(ruleDrawCheck), Says: "void the share when its lease is over"},
	"watchdog":        {Number: int(ruleWatchdog), Says: "void the share of a machine that was suspended"},
	"asked-on-time":   {Number: int(ruleAskedOnTime), Says: "only who has asked on time goes on without the store"},
	"degraded-grace":  {Number: int(ruleGrace), Says: "a share without the store's consent ends soon after the last request"},
	"pause-later":     {Number: int(rulePauseLater), Says: "of two pauses the one that ends later counts"},
	"pause-news":      {Number: int(rulePauseNews), Says: "news that are older than what is on record change nothing"},
	"pause-clock":     {Number: int(rulePauseClock), Says: "a pause that the store has lost is given back on the clock of the new record"},
	"pause-slept":     {Number: int(rulePauseSlept), Says: "the time that the pool slept is a part of the pause"},
	"pause-kept":      {Number: int(rulePauseKept), Says: "a pause ends only where somebody has resumed since, whatever takes its place on record"},
	"pause-seen":      {Number: int(rulePauseSeen), Says: "what is given back holds the pauses that were seen in its place"},
	"till-void":       {Number: int(ruleTillVoid), Says: "a lot of a tag is void two intervals after its request was sent"},
	"till-given-up":   {Number: int(ruleTillGivenUp), Says: "what a tag gives back is not in hand any more"},
	"till-forgotten":  {Number: int(ruleTillForgotten), Says: "what a tag was given before the store forgot something is not given back"},
	"death-proof":     {Number: int(ruleProof), Says: "only who holds what a process held until it died names its death"},
})

// skip tells whether a rule of the protocol is left out by a test.
func skip(r rule) bool { return board.Skip(int(r)) }

// RuleNames lists the rules that LeaveOut knows, in the order of their names.
func RuleNames() []string { return board.Names() }

// RuleSays tells what a rule says; empty for one that is not known.
func RuleSays(name string) string { return board.Says(name) }

// LeaveOut leaves a rule of the protocol out of every processor until restore is called. It
// exists only with the build tag numathrottle_mutants, for tests that show that they
// notice. Not to be called while one of them is in use.
func LeaveOut(name string) (restore func(), err error) { return board.LeaveOut(name) }
