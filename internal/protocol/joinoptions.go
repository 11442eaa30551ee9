package protocol

import (
	"log/slog"
	"time"
)

// JoinOptions are the options of consensus.Join.
type JoinOptions struct {
	Config   ProcessorConfig
	Logger   *slog.Logger
	FailFast bool
	Witness  Witness // nil: none
	// OnSync are called after every sync, with how long it took and why it failed.
	OnSync []func(took time.Duration, err error)
}

// A Witness keeps a Testament, and so proves to a processor that earlier ones under its ID are dead.
// A Member calls its methods one at a time, before each request and when it leaves, and with no lock
// held. None may block for long; a Witness that cannot do its work says so by itself, once, and does
// nothing from then on.
type Witness interface {
	// Inherit tries to get hold of the Testament, and returns the wills found there when it did.
	// held is false when another process holds it: Inherit is called again then.
	Inherit() (wills []Will, held bool)
	// Settled says that the store knows of the deaths that Inherit has returned.
	Settled()
	// Write stores the will of this process, which holds the Testament.
	Write(own Will)
	// Release gives the Testament up: this process uses nothing any more. keep leaves its will
	// there, because the store was not notified, and nothing is owed.
	Release(keep bool)
}

// WithWitness lets the member take over at once the holdings of processes under its ID that w proves
// to be dead, and leaves its own to its successor. Defaults to none: a claim then stays for a
// removal time. Not for a limit on calls in flight: those of a dead process may go on.
func WithWitness(w Witness) func(*JoinOptions) { return func(o *JoinOptions) { o.Witness = w } }
