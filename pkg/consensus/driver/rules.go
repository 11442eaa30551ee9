package driver

// A rule is one rule of the store's side of the protocol that a test build can leave out, to show
// that the simulation notices. See rules_on.go and rules_off.go: in every other
// build skip is constantly false and costs nothing.
type rule uint

const (
	ruleFreeze            rule = iota // freeze when the store has forgotten something
	ruleFreezeRemoval                 // freeze for a removal time of the longest lease, not for a lease
	ruleClockClamp                    // bound what one step adds to the logical clock
	ruleRemovalMargin                 // remove a row later than its lease ends
	ruleSequence                      // refuse a request older than the newest recorded
	ruleClone                         // close an incarnation that two processes use
	ruleReplacedClaim                 // keep the claim of a replaced incarnation until removal
	ruleTombstone                     // keep the row of a processor that left
	ruleRoom                          // cap the share in use by the room, too
	ruleClaimFalls                    // lower a claim only when less is reported in use
	ruleRemoval                       // remove rows that are silent for a removal time, with their claims
	ruleRecall                        // a row older than its processor is its own only if it has sent the newest request
	rulePermitClaim                   // space permits by what the processors leave of the limit
	rulePermitEnd                     // let no share grow before the last permit is void
	rulePermitReach                   // after a freeze, hold permits for as long as processors say that theirs lie ahead
	rulePermitHold                    // after a freeze, hold permits for a spacing at least
	rulePermitSpacing                 // reserve no slot within a spacing of the newest
	ruleSpacingBy                     // lower the spacing at once only by the newest version of a document
	rulePermitReturn                  // take slots back only from the newest reservation, by its name
	ruleBase                          // take a change of a document only if it was made from the version on record
	ruleFacts                         // what is reported in use is the claim, also where there is no room for it
	ruleRepeat                        // a repeated request gets what it got, and changes nothing
	ruleOutlasts                      // a pool is new only when no share without the store's consent can be left of it
	ruleDeadRow                       // keep the row of a process that is known to be dead
	ruleTillHold                      // give no tokens before what was drawn from a store that has forgotten it is void
	ruleTillHoldShort                 // and wait for as long as a draw is good, with clocks that run apart
	ruleTillBack                      // tokens given back count only if no request was recorded since the answer taken last
	ruleTillBackAfterWipe             // and only if nothing was forgotten since they were drawn
	ruleTillLate                      // a late or repeated request draws nothing and gives nothing back
	ruleTillVersion                   // a request by an older version of the quotas draws nothing
	ruleTillBackEarned                // of tokens given back only what is not earned yet can be drawn again
	ruleTillSeenSum                   // what processors have seen spent is told by each of them: the largest counts
	ruleTillDropped                   // what is known of the dropped tills of names counts when they come back
	ruleDeadClone                     // the death of one of two processes that use an incarnation frees nothing
)
