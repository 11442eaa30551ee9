package sim

import (
	"github.com/numaproj-contrib/numathrottle/internal/virtual"
)

// An eventKind is the kind of an event.
type eventKind uint8

const (
	eventWake    eventKind = iota // a process has something to do
	eventArrive                   // a message reaches the store
	eventDeliver                  // a message reaches its process
	eventDraw                     // a process's callers draw
	eventDo                       // anything else
)

// An event is something that happens at a moment of true time.
type event struct {
	kind eventKind
	gen  uint32 // of the process's timer, for eventWake
	p    *process
	m    *message
	do   func()
}

// A queue holds the future events of a run.
type queue = virtual.Queue[event]
