package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// remindEvery is how often a lasting loss of the store is logged again.
const remindEvery = time.Minute

// A Logbook decides what a Member logs about its store: each trouble once when it begins, once when it ends, and once when its
// reason becomes known. A lasting loss is logged once a minute. A logbook has neither clock nor lock.
type Logbook struct {
	failing   time.Time // when the first of the failures in a row came; zero: the last sync succeeded
	logged    bool      // the failures in a row were logged
	lost      bool      // the end of the share was logged
	remind    time.Time // when the loss is logged next
	unknown   bool      // the reason of failing syncs was not known when last logged: there was no answer in time
	frozen    bool      // a freeze was logged
	replaced  bool
	quotas    bool      // a document of quotas that cannot be read was logged
	blind     bool      // a document that stops this processor was logged
	hasJoined bool      // the store has answered before
	slow      bool      // a slow store was logged
	settings  string    // those that disagreed when last logged
	targets   time.Time // when the targets of tags may be logged next
	orders    orders    // logged last
}

// A Situation is a Processor after a sync, as far as it is logged.
type Situation struct {
	err       error
	state     State
	share     driver.Share  // in force
	left      time.Duration // how long it is good for
	degraded  bool
	issuing   bool
	onLoss    StoreLoss
	frozen    time.Duration // how long no share can grow yet
	frozenBy  driver.FreezeCause
	interval  time.Duration      // between syncs at present
	usual     time.Duration      // the same with a quick store
	slow      bool               // more than one answer has come late since the interval was as usual
	stretched bool               // the interval is longer than usual
	quotas    error              // why a document of quotas cannot be read
	stopped   error              // why a document that stops this processor cannot be read
	settings  string             // of processors whose settings disagree; empty: they agree
	removed   []driver.RosterRow // processors that the store has removed since the last answer
	spent     spentList          // corrections of spent budgets that were not logged yet
	orders    orders             // in force
}

// A LogLine is one line to log.
type LogLine struct {
	Level   slog.Level
	Message string
	Args    []any
}

// Observe records a sync that has just ended and returns the lines to log.
func (b *Logbook) Observe(now time.Time, s *Situation) []LogLine {
	if s.err != nil {
		return b.failed(now, s)
	}
	var lines []LogLine
	if b.logged {
		lines = append(lines, LogLine{slog.LevelInfo, "the pool's store answers again", []any{
			"after", now.Sub(b.failing).Round(time.Millisecond), "share", s.share,
		}})
	}
	first := !b.hasJoined
	b.failing, b.logged, b.lost, b.hasJoined = time.Time{}, false, false, true
	switch {
	case s.state == StateReplaced && !b.replaced:
		lines = append(lines, LogLine{
			slog.LevelError,
			"another process joined the pool under this pod's ID; this one draws nothing: give each its own ID", nil,
		})
	case s.frozen > 0 && !b.frozen && s.state != StateReplaced:
		b.frozen = true
		lines = append(lines, frozenLine(s, first))
	case s.frozen <= 0 && b.frozen && s.state == StateHolding:
		b.frozen = false
		lines = append(lines, LogLine{slog.LevelInfo, "the pool is no longer frozen", []any{"share", s.share}})
	}
	for i := range s.removed {
		r := &s.removed[i]
		lines = append(lines, LogLine{slog.LevelInfo, "a pod that has not left was removed from the pool: it was silent for too long", []any{
			"removed", r.ID, "silent", r.Silent.Round(time.Millisecond), "share", r.Claim,
		}})
	}
	lines = append(lines, b.slowed(s)...)
	lines = append(lines, b.unread(s.stopped)...)
	if s.quotas != nil && !b.quotas {
		lines = append(lines, LogLine{
			slog.LevelWarn, "the pool's changes of quotas cannot be read: what was known before goes on", []any{"error", s.quotas},
		})
	}
	for _, c := range s.spent {
		lines = append(lines, LogLine{slog.LevelWarn, "what is spent of a budget was set by an operator", []any{
			"tag", tagName(c.Tag), "tokens", c.Tokens, "window", c.Start.UTC().Format(time.RFC3339), "by", c.By, "reason", c.Reason,
		}})
	}
	if s.stopped == nil { // else not all orders are known
		lines = append(lines, s.orders.since(&b.orders)...)
		b.orders = s.orders
	}
	b.quotas = s.quotas != nil
	b.replaced = s.state == StateReplaced
	return append(lines, b.disagreed(s.settings)...)
}

// unread logs once that a document stops this processor, and once that it no longer does.
func (b *Logbook) unread(why error) []LogLine {
	was := b.blind
	b.blind = why != nil
	switch {
	case b.blind && !was:
		return []LogLine{{
			slog.LevelError, "this release cannot read what the pool says: the share is not renewed, and this process draws nothing once it has ended; " +
				"a newer release can; numathrottle why names the command that ends it", []any{"error", why},
		}}
	case was && !b.blind:
		return []LogLine{{slog.LevelInfo, "what the pool says can be read again", nil}}
	}
	return nil
}

// slowed logs the first answer after more than one slow request, answered or not, and when intervals are as usual again.
func (b *Logbook) slowed(s *Situation) []LogLine {
	switch {
	case s.slow && s.stretched && !b.slow:
		b.slow = true
		return []LogLine{{slog.LevelWarn, "the pool's store is slow, or was away: it is asked less often, and shares follow the load later", []any{
			"interval", s.interval.Round(time.Millisecond), "usual", s.usual,
		}}}
	case b.slow && !s.stretched:
		b.slow = false
		return []LogLine{{slog.LevelInfo, "the pool's store is quick again: it is asked as often as usual", []any{"interval", s.interval}}}
	}
	return nil
}

// disagreed logs each change of disagreeing settings once. The rollout of a new version is one such change, and its end another.
func (b *Logbook) disagreed(settings string) []LogLine {
	if settings == b.settings {
		return nil
	}
	b.settings = settings
	if settings == "" {
		return []LogLine{{slog.LevelInfo, "all pods of the pool have the same settings again", nil}}
	}
	return []LogLine{{slog.LevelWarn, "pods of the pool have settings that disagree", []any{"settings", settings}}}
}

// failed records a failed sync. A single lost sync is not worth a line: the next one follows before the lease ends.
func (b *Logbook) failed(now time.Time, s *Situation) []LogLine {
	again := !b.failing.IsZero()
	if !again {
		b.failing = now
	}
	gone := s.degraded || s.state == StateLost || s.state == StateJoining
	contended := errors.Is(s.err, driver.ErrContention)
	switch {
	case s.state == StateReplaced:
		return nil
	case gone && !b.lost, gone && !now.Before(b.remind):
		b.lost, b.logged, b.remind = true, true, now.Add(remindEvery)
	case !gone && again && !contended && !b.logged:
		b.logged = true
	case !b.logged || contended || !b.unknown || TimedOut(s.err):
		return nil
	}
	b.unknown = TimedOut(s.err)
	message := "syncs with the pool's store fail"
	if contended {
		message = "syncs with the pool's store come too late: more pods write than it can serve"
	}
	return []LogLine{{slog.LevelWarn, message, []any{
		"effect", b.effect(s), "error", s.err, "for", now.Sub(b.failing).Round(time.Millisecond), "share", s.share,
		"state", s.state, "degraded", s.degraded,
	}}}
}

// TimedOut reports whether a sync failed because no answer came in time, which says nothing about the reason.
func TimedOut(err error) bool {
	var e interface{ Timeout() bool }
	return errors.As(err, &e) && e.Timeout()
}

// effect describes the effect of a loss of the store on draws.
func (b *Logbook) effect(s *Situation) string {
	switch {
	case s.degraded:
		return fmt.Sprintf("goes on with %v of the limit, at most %s without the store", s.share, duration.Short(degradeFor))
	case s.state == StateJoining && !b.hasJoined:
		return "nothing is granted until the store answers for the first time"
	case s.state == StateJoining || s.state == StateLost:
		return "nothing is granted until the store answers"
	case s.onLoss == Degrade && !s.issuing:
		return fmt.Sprintf("the share of %v is good for %v; a share of the pool's size is used after that", s.share, s.left.Round(time.Millisecond))
	default:
		return fmt.Sprintf("what was granted is good for %v; nothing is granted after that", s.left.Round(time.Millisecond))
	}
}

// frozenLine returns the line for the start of a freeze. A new pool is no trouble for its first processors. A loss of the store's
// data is trouble, and so is a pool that is new to the store but not to this processor.
func frozenLine(s *Situation, first bool) LogLine {
	line := LogLine{slog.LevelWarn, "the pool is frozen: no share grows", []any{
		"for", s.frozen.Round(time.Millisecond), "because", s.frozenBy.Explain(), "share", s.share,
	}}
	if s.frozenBy == driver.FreezeNewRecord && first && s.share == 0 {
		line.Level, line.Message = slog.LevelInfo, "the pool is new to the store: nothing is granted yet"
	}
	return line
}

// Bounds of the log lines about the targets of tags.
const (
	targetsEvery   = 5 * time.Second
	mostTagTargets = 100
)

// TagTargets returns a line for each tag in use that has a quota by name, with the inputs of its target. It does so at most every
// five seconds, for the first hundred tags by name.
func (b *Logbook) TagTargets(now time.Time, tags func() []TagView) []LogLine {
	if now.Before(b.targets) {
		return nil
	}
	b.targets = now.Add(targetsEvery)
	var lines []LogLine
	for _, v := range tags() {
		if len(lines) == mostTagTargets {
			break
		}
		if v.Named && v.inUse() {
			lines = append(lines, LogLine{slog.LevelDebug, "the target of a tag", v.attributes()})
		}
	}
	return lines
}

// tagName is the name of a tag in the log.
func tagName(tag string) string { return cmp.Or(tag, "other") }

// attributes returns the attributes of a tag's line. Rates are in tokens per second.
func (v *TagView) attributes() []any {
	return []any{
		"tag", tagName(v.Tag), "demand", v.Asked, "demandHere", v.Demand, "usedHere", v.Used, "reserved", v.Reserved, "total", v.Total,
		"limiting", v.Taken, "limitingHere", v.Limiting,
		"weight", v.Weight, "class", v.Class, "target", v.Target, "by", v.By, "rateHere", v.Rate, "inHand", v.InHand,
		"spent", v.Spent, "budget", v.Budget, "lacks", v.Lacks,
	}
}
