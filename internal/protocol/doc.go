// Package protocol is the processor's side of a pool: the deterministic core, which decides what to ask of the store and what to grant,
// and the documents of a pool, which operators change. It has no clock and no goroutines; consensus.Member is the shell around a Processor.
// The documentation of package consensus describes the protocol.
package protocol
