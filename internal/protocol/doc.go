// Package protocol is the processor's side of a pool: the deterministic core, which decides what to ask of the store and what to grant,
// and the documents of a pool, which operators change. It has no clock and no goroutines; consensus.Member is the shell around a Processor.
//
// Quotas of tags come in two kinds. Those of tokens are tag buckets, which a tagBook draws from. Those of calls in flight are slots, which are a
// state and not a flow: a slotTags asks the store for slots of a tag's total, and the policy for as many of the pool's slots. Both have the same
// policy of shares (tagPolicy) and the same document.
//
// The documentation of package consensus describes the protocol.
package protocol
