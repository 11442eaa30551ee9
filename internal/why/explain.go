package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Explain says what limits callers. Of several causes it names the one that stops everything, else the cause that affects most callers. It
// is a pure function, and its sentence is plain text.
func Explain(s State) Answer {
	for _, of := range []func(*State) (Answer, bool){ofProcess, ofStore, ofStopping, ofPause, ofPool, ofIgnored} {
		if a, ok := of(&s); ok {
			a.Sentence += s.announces() + s.files()
			return a
		}
	}
	text := "nothing holds callers back" + s.announces()
	if len(s.Differing) > 0 {
		text += ", but pods are configured with a different " + strings.Join(s.Differing, ", ") + s.inPool(": ", "status", "")
	}
	return Answer{CauseNone, Usual, text + s.files()}
}

// announces says that the called service announces less than the limit in force; empty: it does not.
func (s *State) announces() string {
	if s.Announced == "" {
		return ""
	}
	return "; the called service announces " + s.Announced + ", less than " + s.limitText()
}

func broken(cause limit.Reason, format string, args ...any) (Answer, bool) {
	return Answer{string(cause), Broken, fmt.Sprintf(format, args...)}, true
}

func held(cause limit.Reason, format string, args ...any) (Answer, bool) {
	return Answer{string(cause), Held, fmt.Sprintf(format, args...)}, true
}

// inPool returns a command on the pool, after the text before; empty for a limit without a pool.
func (s *State) inPool(before, command, more string) string {
	if s.Pool == "" {
		return ""
	}
	return before + "numathrottle " + command + " --pool " + argument(s.Pool) + more
}

// ofProcess explains faults of the asking process, independently of the store.
func ofProcess(s *State) (Answer, bool) {
	if s.Self == nil {
		return Answer{}, false
	}
	switch s.Self.Reason { //nolint:exhaustive // the others depend on the store, or on what pods tell
	case limit.ReasonClosed:
		return broken(limit.ReasonClosed, "the limiter is closed: it grants nothing any more")
	case limit.ReasonReplaced:
		return broken(limit.ReasonReplaced,
			"another process has joined the pool as %s, and this one gets nothing: give each process an ID of its own (NUMATHROTTLE_ID)", plain(s.Self.ID))
	case limit.ReasonUnreadable:
		if a, ok := s.ofUnreadable(true); ok {
			return a, ok
		}
		return s.cannotRead("this pod", "")
	}
	return Answer{}, false
}

// ofStore explains the effect of a store that does not answer. A share stays valid for a while without it.
func ofStore(s *State) (Answer, bool) {
	lost := s.Self != nil && (s.Self.Reason == limit.ReasonStoreLost ||
		s.Failure != "" && (s.Self.Reason == limit.ReasonNoShare || s.Self.Reason == limit.ReasonFrozen)) // it has not answered yet, or not again
	degraded := s.Self != nil && s.Self.Degraded
	observer := s.Self == nil && s.Failure != ""
	if !lost && !degraded && !observer {
		return Answer{}, false
	}
	text := "the store does not answer"
	switch {
	case s.Remedy != "":
		text = cut(s.Remedy)
	case s.Failure != "":
		text = StoreText(s.Failure)
	}
	switch {
	case lost:
		text += ": this pod grants nothing until it answers"
	case degraded:
		text += ": this pod goes on with its share of " + percent(s.Self.Share) + " until it answers, for an hour at most"
	}
	return broken(limit.ReasonStoreLost, "%s", text)
}

// ofStopping explains a document that stops pods that cannot read it, and ofIgnored one that does not.
func ofStopping(s *State) (Answer, bool) { return s.ofUnreadable(true) }
func ofIgnored(s *State) (Answer, bool)  { return s.ofUnreadable(false) }

// ofPause explains a pause of everything.
func ofPause(s *State) (Answer, bool) {
	for _, p := range s.Pauses {
		if p.Tag == "" && s.goesOn(&p) {
			return broken(limit.ReasonPause, "paused%s%s%s%s%s", by(p.By), until(p.Until, s.Now), because(p.Reason),
				waits(s.waiting(), 0), s.inPool(": ", "resume", ""))
		}
	}
	return Answer{}, false
}

func (s *State) goesOn(p *limit.Paused) bool { return p.Until.IsZero() || p.Until.After(s.Now) }

// because formats a given reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + plain(reason) + ")"
}

// waiting counts all waiting callers.
func (s *State) waiting() (callers int) {
	for i := range s.Pods {
		callers += s.Pods[i].Waiting
	}
	return callers
}

// ofPool explains the reports of the pool's pods, and the silence of others.
func ofPool(s *State) (Answer, bool) {
	a, some := ofReports(s)
	text := s.silence()
	switch {
	case text == "":
		return a, some
	case !some || len(s.Pods) == 0:
		return Answer{CauseSilent, Broken, text}, true
	case (a.Cause == string(limit.ReasonLimit) || a.Cause == string(limit.ReasonInFlight)) && s.used() < fullUse:
		return Answer{CauseSilent, Broken, text + waits(s.waiting(), 0)}, true
	}
	a.Sentence = text + "; " + a.Sentence
	return a, true
}

// ofReports explains the reports of the pool's pods.
func ofReports(s *State) (Answer, bool) {
	switch {
	case len(s.Pods) == 0 && s.Gone > 0:
		return Answer{CauseNobody, Nobody, "no pod has asked the store for " + span(s.Gone) + ": they have ended, or cannot reach it"}, true
	case len(s.Pods) == 0:
		return Answer{CauseNobody, Nobody, "nobody is in the pool"}, true
	case s.Limit == "" && s.Slots == 0 && !s.Unknown && (s.Self == nil || s.Self.Reason == ""):
		return Answer{CauseNone, Usual, "there is no limit: everything passes at once"}, true
	}
	g, some := s.dominant()
	if a, ok := ofFreeze(s, &g, some); ok {
		return a, ok
	}
	if some {
		return ofGroup(s, &g)
	}
	if a, ok := ofTagPause(s); ok {
		return a, ok
	}
	if n := s.waiting(); n > 0 {
		return held(limit.ReasonOther, "%s, and pods do not say what for", waits(n, 0)[2:])
	}
	return Answer{}, false
}

// A group is the pods whose callers are held back by the same cause.
type group struct {
	reason limit.Reason
	tag    string
	first  string          // the tag of its first pod
	tags   []string        // those of its pods, each once, as a sentence names them
	left   []time.Duration // of their spent budgets
	ids    []string
	hold   sharing.Hold // of all its pods
	share  float64
	used   float64
}

// fullUse is the fraction from which a limit counts as used in full, because measurements lag behind.
const fullUse = 0.9

// dominant returns the group with the most callers held back, and of several the largest.
func (s *State) dominant() (worst group, some bool) {
	var groups []group
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Reason == "" {
			continue
		}
		tag := p.Tag
		if joins(p) {
			tag = ""
		}
		at := slices.IndexFunc(groups, func(g group) bool {
			return g.reason == p.Reason && g.tag == tag && g.hold.Blocked == p.Hold.Blocked
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{reason: p.Reason, tag: tag, first: p.Tag})
		}
		groups[at].add(p)
	}
	groups = slices.DeleteFunc(groups, func(g group) bool {
		// Between two tokens a bucket is empty. That does not hold callers back.
		passing := (g.reason == limit.ReasonLimit || g.reason == limit.ReasonAdaptive) && g.tag == ""
		return passing && g.hold.Callers == 0 && g.hold.Owed < leastOwed && s.used() < fullUse
	})
	if others := slices.DeleteFunc(slices.Clone(groups), s.isMomentary); len(others) > 0 {
		groups = others
	}
	if len(groups) == 0 {
		return group{}, false
	}
	return slices.MinFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.hold.Callers, a.hold.Callers), cmp.Compare(len(b.ids), len(a.ids)),
			cmp.Compare(a.reason.Index(), b.reason.Index()), cmp.Compare(a.tag, b.tag))
	}), true
}

// joins reports whether a pod is in one group with all that are held back for its reason, whatever their tags.
func joins(p *Pod) bool {
	return p.Reason == limit.ReasonQuota && !p.Hold.Blocked || p.Reason == limit.ReasonBudget
}

// isMomentary reports whether the limit held a group back only for a moment: in the last second or two its pods used clearly less than
// their shares.
func (s *State) isMomentary(g group) bool {
	if g.reason != limit.ReasonLimit || g.tag != "" || g.hold.Owed >= leastOwed || s.Ramp > 0 {
		return false
	}
	return g.used > 0 && g.used < fullUse*g.share && g.share*s.PerSecond >= leastJudged && s.used() < fullUse
}

// leastJudged is the rate, in tokens per second, from which use in a second or two shows whether a limit binds.
const leastJudged = 10

// add adds a pod to a group. If the pod does not report whom it holds back, that is all its waiting callers.
func (g *group) add(p *Pod) {
	g.ids = append(g.ids, p.ID)
	g.share, g.used = g.share+p.Share, g.used+p.Used
	at := slices.Index(g.tags, p.tagName())
	if at < 0 {
		at, g.tags, g.left = len(g.tags), append(g.tags, p.tagName()), append(g.left, 0)
	}
	g.left[at] = max(g.left[at], p.Hold.Left)
	h := p.Hold
	if h == (sharing.Hold{}) {
		h.Callers = p.Waiting
	}
	g.hold.Callers += h.Callers
	g.hold.Longest, g.hold.Rate, g.hold.Owed = max(g.hold.Longest, h.Longest), max(g.hold.Rate, h.Rate), max(g.hold.Owed, h.Owed)
	g.hold.Blocked, g.hold.Tags = h.Blocked, max(g.hold.Tags, h.Tags)
}

// used returns the fraction of the limit that the pods use together.
func (s *State) used() (part float64) {
	for i := range s.Pods {
		part += s.Pods[i].Used
	}
	return part
}

// ofFreeze explains a freeze that holds callers back: no pod has a share, or shares cannot follow the waiting callers.
func ofFreeze(s *State, g *group, some bool) (Answer, bool) {
	var shares float64
	for i := range s.Pods {
		shares += s.Pods[i].Share
	}
	stuck := some && (g.reason == limit.ReasonFrozen || g.reason == limit.ReasonNoShare ||
		(g.reason == limit.ReasonLimit || g.reason == limit.ReasonInFlight) && g.tag == "" && s.used() < fullUse)
	switch {
	case s.Frozen <= 0 || shares > 0 && !stuck:
		return Answer{}, false
	case s.FrozenBy == driver.FreezeNewRecord && shares == 0:
		return broken(limit.ReasonFrozen, "new pool: first tokens in %s%s", whole(s.Frozen), waits(s.waiting(), 0))
	}
	because := ""
	if text := s.FrozenBy.Explain(); text != "" {
		because = ", for " + plain(text)
	}
	return broken(limit.ReasonFrozen, "no share grows for %s%s%s", whole(s.Frozen), because, waits(s.waiting(), 0))
}

// ofTagPause explains the pause of a tag without waiting callers.
func ofTagPause(s *State) (Answer, bool) {
	for i := range s.Pauses {
		if p := &s.Pauses[i]; s.goesOn(p) {
			return s.tagPaused(p, &group{tag: p.Tag})
		}
	}
	return Answer{}, false
}

func (s *State) tagPaused(p *limit.Paused, g *group) (Answer, bool) {
	return broken(limit.ReasonPause, "tag %s is paused%s%s%s%s%s", plain(p.Tag), by(p.By), until(p.Until, s.Now), because(p.Reason),
		s.waitsOf(g), s.inPool(": ", "resume", " --tag "+argument(p.Tag)))
}
