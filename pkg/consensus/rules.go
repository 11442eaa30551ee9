package consensus

// A rule is one rule of the processor's side of the protocol that a test build can leave out, to show
// that the simulation notices. See rules_on.go and rules_off.go: in every other
// build skip is constantly false and costs nothing.
type rule uint

const (
	ruleLateAnswer    rule = iota // take only the answer to the newest request
	ruleBrokenLease               // a share that lapsed since it was reported is not renewed
	ruleLeaseFromSend             // the lease runs from the send, not from the receipt
	ruleDrawCheck                 // void the share when its lease is over
	rulePauseLater                // of two pauses the one that ends later counts
	rulePauseNews                 // news that are older than what is on record change nothing
	rulePauseClock                // a pause that the store has lost is given back on the clock of the new record
	rulePauseSlept                // the time that the pool slept is a part of the pause
	rulePauseKept                 // a pause ends only where somebody has resumed since, whatever takes its place on record
	rulePauseSeen                 // what is given back holds the pauses that were seen in its place
	ruleWatchdog                  // void the share of a machine that was suspended
	ruleAskedOnTime               // only who has asked on time goes on without the store
	ruleGrace                     // a share without the store's consent ends when nobody asks for it
	ruleProof                     // only who holds what a process held until it died names its death
	ruleTillVoid                  // a lot of a tag is void two intervals after its request was sent
	ruleTillGivenUp               // what a tag gives back is not in hand any more
	ruleTillForgotten             // what a tag was given before the store forgot something is not given back
)
