package protocol

import (
	"context"
	"log/slog"
	"time"
)

// JoinOptions are the options of consensus.Join.
type JoinOptions struct {
	Config       ProcessorConfig
	Logger       *slog.Logger
	FailFast     bool
	TakeoverLock TakeoverLock                 // nil: none
	Files        FileSource                   // nil: none
	Start        *func(context.Context) error // nil: Join starts the member
	// OnSync are called after every sync, with how long it took and why it failed.
	OnSync []func(took time.Duration, err error)
}

// WithStart lets Join make a member that does not sync yet, and sets start to what begins it, for one call: after a limiter has been
// attached, so that the first sync names its terms. With FailFast start does the first sync and returns its error; Leave then does nothing.
func WithStart(start *func(context.Context) error) func(*JoinOptions) {
	return func(o *JoinOptions) { o.Start = start }
}

// A TakeoverLock keeps a TakeoverRecord, and so proves to a processor that earlier ones under its ID are dead.
// A Member calls its methods one at a time, before each request and when it leaves, and with no lock
// held. None may block for long; a TakeoverLock that cannot do its work says so by itself, once, and does
// nothing from then on.
type TakeoverLock interface {
	// Inherit tries to get hold of the TakeoverRecord, and returns the last states found there when it did.
	// held is false when another process holds it: Inherit is called again then.
	Inherit() (lastStates []LastState, held bool)
	// Settled says that the store knows of the deaths that Inherit has returned.
	Settled()
	// Write stores the last state of this process, which holds the TakeoverRecord.
	Write(own LastState)
	// Release gives the TakeoverRecord up: this process uses nothing any more. keep leaves its last state
	// there, because the store was not notified, and nothing is owed.
	Release(keep bool)
}

// WithTakeoverLock lets the member take over at once the holdings of processes under its ID that w proves
// to be dead, and leaves its own to its successor. Defaults to none: a claim then stays for a
// removal time. Not for a limit on calls in flight: those of a dead process may go on.
func WithTakeoverLock(w TakeoverLock) func(*JoinOptions) {
	return func(o *JoinOptions) { o.TakeoverLock = w }
}
