package why

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// leastOwed is the time from which debt counts: settling a call often leaves a little.
const leastOwed = time.Second

// ofGroup explains the cause of a group.
func ofGroup(s *State, g *group) (Answer, bool) {
	wait := s.waitsOf(g)
	if g.tag != "" {
		return ofTag(s, g)
	}
	switch g.reason {
	case limit.ReasonOther, limit.ReasonClosed: // like an unknown one
	case limit.ReasonQuota, limit.ReasonBudget, limit.ReasonNames:
		return ofTag(s, g)
	case limit.ReasonLimit:
		return ofLimit(s, g, wait)
	case limit.ReasonAdaptive:
		to := " is lower than configured"
		if s.Lowered > 0 && s.PerSecond > 0 {
			to = " is at " + rate(s.Lowered*s.PerSecond)
		}
		return held(g.reason, "the called service refuses calls, and %s%s%s", s.limitText(), to, wait)
	case limit.ReasonInFlight:
		return ofInFlight(s, g, wait)
	case limit.ReasonSlotsTaken:
		return held(g.reason, "as many tokens are reserved ahead as may be, of %s%s", s.limitText(), wait)
	case limit.ReasonPause: // of a process, after a refusal
		return held(g.reason, "%s holds calls back: the called service wants to be left alone%s", pods(g.ids, len(s.Pods)), wait)
	case limit.ReasonClass:
		return held(g.reason, "tags of a higher class use %s%s", s.limitText(), wait)
	case limit.ReasonShareTooSmall:
		return broken(g.reason, "the share of %s is too small to grant a call at once, for the limit is hard: run fewer pods, or use a longer period%s",
			pods(g.ids, len(s.Pods)), wait)
	case limit.ReasonNoShare:
		return broken(g.reason, "%s has no share of the limit yet, and gets one with its next syncs%s", pods(g.ids, len(s.Pods)), wait)
	case limit.ReasonFrozen:
		return broken(g.reason, "no share of %s grows, for the store has forgotten something%s", pods(g.ids, len(s.Pods)), wait)
	case limit.ReasonStoreLost:
		return broken(g.reason, "%s cannot reach the store: look at its log%s", pods(g.ids, len(s.Pods)), wait)
	case limit.ReasonUnreadable:
		return s.cannotRead(pods(g.ids, len(s.Pods)), wait)
	case limit.ReasonReplaced:
		return broken(g.reason, "two processes are %s: give each an ID of its own (NUMATHROTTLE_ID)%s", pods(g.ids, len(s.Pods)), wait)
	case limit.ReasonTooLarge:
		return broken(g.reason, "a call at %s costs more than one may ever draw: raise the limit's burst%s", pods(g.ids, len(s.Pods)), wait)
	}
	return held(limit.ReasonOther, "%s holds calls back (%s)%s", pods(g.ids, len(s.Pods)), plain(string(g.reason)), wait)
}

// limitText describes the limit in force.
func (s *State) limitText() string {
	if s.Limit == "" {
		return "the limit"
	}
	return "the limit of " + s.Limit
}

// ofLimit explains the limit itself as the cause.
func ofLimit(s *State, g *group, wait string) (Answer, bool) {
	const cause = limit.ReasonLimit
	switch used := s.used(); {
	case g.hold.Owed >= leastOwed:
		return held(cause, "calls at %s used more than they drew, which takes %s to earn%s%s", pods(g.ids, len(s.Pods)), span(g.hold.Owed), wait,
			s.inPool(": ", "debt forgive", ""))
	case s.Ramp > 0 && s.Ramp < s.PerSecond*(1-1e-6):
		return held(cause, "%s ramps up, and is at %s%s", s.limitText(), rate(s.Ramp), wait)
	case s.isMomentary(*g):
		return held(cause, "calls at %s wait for their next tokens, while the pool uses %s of %s%s", pods(g.ids, len(s.Pods)),
			percent(used), s.limitText(), wait)
	case used < fullUse && len(g.ids) < len(s.Pods):
		return held(cause, "%s, while the pool uses %s of %s%s", s.sharesUsed(g), percent(used), s.limitText(), wait)
	case s.Override != nil:
		return held(cause, "%s, an override%s%s, is used in full%s%s", s.limitText(), by(s.Override.By), until(s.Override.Until, s.Now), wait,
			s.inPool(": ", "limit clear", ""))
	case s.Files.Limit:
		return held(cause, "%s, by the changed settings file %s, is used in full%s", s.limitText(), plain(s.Files.InForce), wait)
	case s.Followed:
		return held(cause, "%s, which the called service announces, is used in full%s", s.limitText(), wait)
	case s.Awaited:
		return held(cause, "%s, until the called service announces one, is used in full%s", s.limitText(), wait)
	case s.Disagree:
		return held(cause, "%s, the lowest that pods are configured with, is used in full%s", s.limitText(), wait)
	}
	return held(cause, "%s is used in full%s", s.limitText(), wait)
}

// sharesUsed says that the pods of a group have used their shares.
func (s *State) sharesUsed(g *group) string {
	verb := "has used its share"
	if len(g.ids) > 1 {
		verb = "have used their shares"
	}
	return fmt.Sprintf("%s %s of %s", pods(g.ids, len(s.Pods)), verb, percent(g.share))
}

// ofInFlight explains a limit of calls in flight as the cause.
func ofInFlight(s *State, g *group, wait string) (Answer, bool) {
	if used := s.used(); used < fullUse && len(g.ids) < len(s.Pods) {
		return held(g.reason, "%s, while the pool uses %s of %d calls in flight%s", s.sharesUsed(g), percent(used), s.Slots, wait)
	}
	return held(g.reason, "all %d calls in flight are taken%s", s.Slots, wait)
}

// changed says that the quota of a tag is a change, and how to end it; both empty: it is as configured.
func (s *State) changed(tag string) (order, remedy string) {
	o, ok := s.Quotas[tag]
	if !ok {
		return "", ""
	}
	of := argument(tag)
	if tag == protocol.TagOthers {
		of = "--other"
	}
	return ", a change" + by(o.By) + until(o.Until, s.Now) + ",", s.inPool(": ", "quota clear "+of, "")
}

// verbs returns the words that follow the subject.
func (g *group) verbs(many bool) (is, has, its string) {
	if many || g.tag == protocol.TagOthers || len(g.tags) > 0 && g.tags[0] == allOthers {
		return "are", "have", "their"
	}
	return "is", "has", "its"
}

// ofTotal explains the total of tags as the cause. rest ends the sentence.
func (s *State) ofTotal(g *group, rest string) (Answer, bool) {
	tag, many := g.subject()
	is, has, its := g.verbs(many)
	switch total := g.hold.Rate; {
	case g.hold.Blocked:
		return broken(g.reason, "%s %s blocked by a total of 0%s", tag, is, rest)
	case s.Slots > 0 && total > 0 && !many:
		return held(g.reason, "%s %s %.0f of %.0f calls in flight%s", tag, has, total, total, rest)
	case s.Slots > 0:
		return held(g.reason, "%s %s all calls in flight that %s quota allows%s", tag, has, its, rest)
	case many:
		return held(g.reason, "%s %s held at %s rate caps%s", tag, is, its, rest)
	case total > 0:
		return held(g.reason, "%s %s held at %s rate cap of %s%s", tag, is, its, rate(total), rest)
	}
	return held(g.reason, "%s %s held at %s rate cap%s", tag, is, its, rest)
}

// ofTag explains the quota of a tag, or its pause, as the cause.
func ofTag(s *State, g *group) (Answer, bool) {
	wait := s.waitsOf(g)
	tag, many := g.subject()
	is, has, its := g.verbs(many)
	order, remedy := "", ""
	if !many {
		order, remedy = s.changed(g.first)
	}
	switch g.reason { //nolint:exhaustive // the others are none of a tag
	case limit.ReasonPause:
		for i := range s.Pauses {
			if p := &s.Pauses[i]; p.Tag == g.tag && s.goesOn(p) {
				return s.tagPaused(p, g)
			}
		}
		return broken(g.reason, "%s %s paused%s", tag, is, wait)
	case limit.ReasonQuota:
		return s.ofTotal(g, strings.TrimSuffix(order, ",")+wait+remedy)
	case limit.ReasonBudget:
		end, budget := "", "budget"
		if many {
			g.tags, budget = g.spent(s.Now), "budgets"
			tag, _ = g.subject()
		} else if g.left[0] > 0 {
			end = until(s.Now.Add(g.left[0]), s.Now)
		}
		return held(g.reason, "%s %s spent %s %s%s%s%s%s", tag, has, its, budget, order, end, wait, remedy)
	case limit.ReasonTooLarge:
		return broken(g.reason, "a call of %s costs more than its quota can ever grant%s%s%s", tag, strings.TrimSuffix(order, ","), wait,
			cmp.Or(remedy, ": raise its total, burst or budget"))
	case limit.ReasonNames:
		return held(g.reason, "more names of a pattern are in use than are told apart: %s shares a quota with others%s", tag, wait)
	case limit.ReasonAdaptive:
		return held(g.reason, "the called service refuses calls of %s%s", tag, wait)
	case limit.ReasonClass:
		return held(g.reason, "%s waits while tags of a higher class use %s%s", tag, s.limitText(), wait)
	case limit.ReasonNoShare:
		return broken(g.reason, "%s %s no share of %s budgets yet, which are not spent%s", tag, has, its, wait)
	}
	return held(limit.ReasonOther, "%s %s held back (%s)%s", tag, is, plain(string(g.reason)), wait)
}
