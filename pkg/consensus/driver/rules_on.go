//go:build numathrottle_mutants

package driver

import "github.com/numaproj-contrib/numathrottle/internal/failpoints"

var board = failpoints.New("driver", map[string]failpoints.Rule{
	"freeze":               {Number: int(ruleFreeze), Says: "freeze when the store has forgotten something"},
	"freeze-removal":       {Number: int(ruleFreezeRemoval), Says: "freeze for a removal time of the longest lease, not for a lease"},
	"clock-clamp":          {Number: int(ruleClockClamp), Says: "bound what one step adds to the logical clock"},
	"removal-margin":       {Number: int(ruleRemovalMargin), Says: "remove a row later than its lease ends"},
	"sequence":             {Number: int(ruleSequence), Says: "refuse a request older than the newest recorded"},
	"clone":                {Number: int(ruleClone), Says: "close an incarnation that two processes use"},
	"replaced-claim":       {Number: int(ruleReplacedClaim), Says: "keep the claim of a replaced incarnation until removal"},
	"tombstone":            {Number: int(ruleTombstone), Says: "keep the row of a processor that left"},
	"room":                 {Number: int(ruleRoom), Says: "cap the share in use by the room, too"},
	"claim-falls":          {Number: int(ruleClaimFalls), Says: "lower a claim only when less is reported in use"},
	"recall":               {Number: int(ruleRecall), Says: "a row that is older than its processor is its own only if it has sent the newest request"},
	"removal":              {Number: int(ruleRemoval), Says: "remove rows that are silent for a removal time, with their claims"},
	"facts-first":          {Number: int(ruleFacts), Says: "what is reported in use is the claim, also where there is no room for it"},
	"repeat":               {Number: int(ruleRepeat), Says: "a repeated request gets what it got, and changes nothing"},
	"outlasts":             {Number: int(ruleOutlasts), Says: "a pool is new only when no share without the store's consent can be left of it"},
	"permit-claim":         {Number: int(rulePermitClaim), Says: "space permits by what the processors leave of the limit"},
	"permit-end":           {Number: int(rulePermitEnd), Says: "let no share grow before the last permit is void"},
	"permit-reach":         {Number: int(rulePermitReach), Says: "after a freeze, hold permits for as long as processors say that theirs lie ahead"},
	"permit-hold":          {Number: int(rulePermitHold), Says: "after a freeze, hold permits for a spacing at least"},
	"permit-spacing":       {Number: int(rulePermitSpacing), Says: "reserve no slot within a spacing of the newest"},
	"spacing-by":           {Number: int(ruleSpacingBy), Says: "lower the spacing at once only by the newest version of a document"},
	"permit-return":        {Number: int(rulePermitReturn), Says: "take slots back only from the newest reservation, by its name"},
	"document-base":        {Number: int(ruleBase), Says: "take a change of a document only if it was made from the version on record"},
	"till-hold":            {Number: int(ruleTillHold), Says: "give no tokens before what was drawn from a store that has forgotten it is void"},
	"till-hold-short":      {Number: int(ruleTillHoldShort), Says: "hold tills for as long as a draw is good, with clocks that run apart"},
	"till-back":            {Number: int(ruleTillBack), Says: "tokens given back count only if no request was recorded since the answer taken last"},
	"till-back-after-wipe": {Number: int(ruleTillBackAfterWipe), Says: "tokens given back count only if nothing was forgotten since they were drawn"},
	"till-back-earned":     {Number: int(ruleTillBackEarned), Says: "of tokens given back only what is not earned yet can be drawn again"},
	"till-late":            {Number: int(ruleTillLate), Says: "a late or repeated request draws nothing and gives nothing back"},
	"till-version":         {Number: int(ruleTillVersion), Says: "a request by an older version of the quotas draws nothing"},
	"till-seen-sum":        {Number: int(ruleTillSeenSum), Says: "of what processors have seen spent the largest counts, not the sum"},
	"till-dropped":         {Number: int(ruleTillDropped), Says: "what the tills of names had given and spent when they were dropped counts when these come back"},
	"death-row":            {Number: int(ruleDeadRow), Says: "keep the row of a process that is known to be dead"},
	"death-clone":          {Number: int(ruleDeadClone), Says: "the death of one of two processes that use an incarnation frees nothing"},
})

// skip tells whether a rule of the protocol is left out by a test.
func skip(r rule) bool { return board.Skip(int(r)) }

// RuleNames lists the rules that LeaveOut knows, in the order of their names.
func RuleNames() []string { return board.Names() }

// RuleSays tells what a rule says; empty for one that is not known.
func RuleSays(name string) string { return board.Says(name) }

// LeaveOut leaves a rule of the protocol out of every record until restore is called. It
// exists only with the build tag numathrottle_mutants, for tests that show that they
// notice. Not to be called while one of them is in use.
func LeaveOut(name string) (restore func(), err error) { return board.LeaveOut(name) }
