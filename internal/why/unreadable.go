package why

import (
	"slices"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// An unreadable is a document of a pool that somebody cannot read: a later release wrote it, or it is damaged.
type unreadable struct {
	document, what, effect string
	// command replaces it, and stops says that pods grant nothing, or little, until then.
	command string
	stops   bool
}

var unreadables = []unreadable{
	{"limit", "the override of the limit", "pods that cannot read it grant nothing", "limit clear", true},
	{"pause", "the document of pauses", "pods that cannot read it grant nothing", "resume", true},
	{"ramp", "the state of the ramp", "pods that cannot read it stay at the ramp's first rate", "limit clear", true},
	{"backoff", "what refusals left of the limit", "pods that cannot read it leave the limit as it is", "limit clear", false},
	{"quota", "the document of changed quotas", "pods that cannot read it keep the quotas they know", "quota clear --all", false},
	{"file", "the settings of a changed file", "pods that cannot read them keep what they know", "file clear", false},
	{"spent", "the document of spent budgets that were set", "pods ignore it", "quota spent set", false},
	{"debt", "the order to forgive debt", "pods ignore it", "debt forgive", false},
}

// Replacement returns the command that replaces a document of a pool that cannot be read; empty: there is none.
func Replacement(document string) string {
	for _, u := range unreadables {
		if u.document == document {
			return "numathrottle " + u.command
		}
	}
	return ""
}

// ofUnreadable explains a document that cannot be read. stops selects those that hold callers back.
func (s *State) ofUnreadable(stops bool) (Answer, bool) {
	for _, u := range unreadables {
		if u.stops == stops && slices.Contains(s.Unreadable, u.document) {
			level := broken
			if !stops {
				level = held
			}
			return level(limit.ReasonUnreadable, "%s cannot be read, for a later release wrote it or it is damaged; %s%s",
				u.what, u.effect, s.inPool(": update them, or ", u.command, ""))
		}
	}
	return Answer{}, false
}

// cannotRead explains pods that grant nothing because they cannot read a document that the asking process can.
func (s *State) cannotRead(pods, wait string) (Answer, bool) {
	what, command := "the override or the pauses of the pool", "limit clear"
	switch {
	case s.Override != nil:
		what = "the override of the limit"
	case len(s.Pauses) > 0:
		what, command = "the document of pauses", "resume"
	}
	return broken(limit.ReasonUnreadable, "%s cannot read %s, which a later release wrote: update it%s%s", pods, what, s.inPool(", or ", command, ""), wait)
}
