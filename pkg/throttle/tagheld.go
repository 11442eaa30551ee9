package throttle

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/gate"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// A tagHeld records the callers that a tag's own quota, bound or pause holds back, and all calls that wait for it.
type tagHeld struct {
	// log counts all waits and refusals of the tag, also those for the limit. Tags without a quota by name in the configuration share one
	// log. So metrics can show for how long at least one caller waited for any of them.
	log *gate.WaitLog

	mu      sync.Mutex // taken after the tag's own, and before those of logs
	reason  Reason     // why the callers wait at present
	callers list.List  // when each of them began to, in nanoseconds; the first one waits longest
	ended   int64      // when the last of them stopped waiting; 0: none did
	peak    int        // of how many callers that was one
	refused int64      // calls that the tag refused for a lack of its own
	// tagQueue is how many calls wait for the limit, and tagQueueReason why.
	tagQueue       int
	tagQueueReason Reason
	// turnedAway is how many calls the tag refused between the last two looks of the plan.
	turnedAway, looked int64
}

// waits notes that a caller waits for n tokens of the tag itself, for r. end must be called once, when it stops waiting.
func (g *tag) waits(n int, r Reason) (end func()) {
	g.waiting.Add(int64(n))
	h, all := &g.held, &g.t.gate.Waits
	h.mu.Lock()
	defer h.mu.Unlock()
	now := g.t.gate.Now()
	g.turn(now, r)
	at := h.callers.PushBack(now)
	h.log.Apart(now, 1, h.reason)
	all.Apart(now, 1, h.reason)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		now := g.t.gate.Now()
		peak := h.callers.Len()
		if h.isRecent(now) {
			peak = max(peak, h.peak)
		}
		h.peak = peak
		h.callers.Remove(at)
		h.ended = now
		h.log.Apart(now, -1, h.reason)
		all.Apart(now, -1, h.reason)
		g.waiting.Add(-int64(n))
	}
}

// turn makes r the reason for which callers wait. h.mu is held.
func (g *tag) turn(now int64, r Reason) {
	h := &g.held
	if n := h.callers.Len(); r != h.reason {
		h.log.Shift(now, n, h.reason, r)
		g.t.gate.Waits.Shift(now, n, h.reason, r)
	}
	h.reason = r
}

// review checks again why callers wait for the tag: time alone, or an answer of the pool, may have changed that. The tag's lock is held.
func (g *tag) review(now int64) {
	first := g.queue.First
	if first == nil {
		return
	}
	g.held.mu.Lock()
	defer g.held.mu.Unlock()
	g.turn(now, g.tagBucket.Lacks(now, int64(first.Least)))
}

// turnAway notes that a call was refused for a lack of the tag's own.
func (g *tag) turnAway(r Reason) {
	h := &g.held
	h.log.CountRefusal(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refused++; h.callers.Len() == 0 {
		h.reason = r
	}
}

// waitInTagQueue notes that so many more calls wait for the limit, for r; fewer when more is negative.
func (g *tag) waitInTagQueue(more int, r Reason) {
	h := &g.held
	h.mu.Lock()
	defer h.mu.Unlock()
	now := g.t.gate.Now()
	if more > 0 {
		g.turnTagQueue(now, r)
	}
	h.tagQueue += more
	h.log.Apart(now, more, h.tagQueueReason)
}

// turnTagQueue makes r the reason for which calls wait for the limit. h.mu is held.
func (g *tag) turnTagQueue(now int64, r Reason) {
	h := &g.held
	if r != h.tagQueueReason {
		h.log.Shift(now, h.tagQueue, h.tagQueueReason, r)
	}
	h.tagQueueReason = r
}

// lookHeld begins another second of turnedAway. r is why the limit holds calls back at present.
func (g *tag) lookHeld(now int64, r Reason) {
	h := &g.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if r == ReasonLimit && g.outranked.Load() {
		r = ReasonClass
	}
	g.turnTagQueue(now, r)
	h.turnedAway, h.looked = h.refused-h.looked, h.refused
}

// lookLimited begins another second of limited, and returns why the limit holds calls back at present. The plan's lock is held.
func (s *tagSet) lookLimited(now int64) Reason {
	waits := &s.t.gate.Waits
	all := waits.Refusals(ReasonLimit) + waits.Refusals(ReasonAdaptive) + waits.Refusals(ReasonClass)
	s.limited.Store(all - s.limitedAll.Swap(all))
	s.t.gate.Lock()
	defer s.t.gate.Unlock()
	return s.t.reason(now, s.t.bucket.Units(1))
}

// isRecent reports whether callers have stopped waiting in the last second. h.mu is held.
func (h *tagHeld) isRecent(now int64) bool { return h.ended > 0 && now-h.ended < int64(time.Second) }

// A hold describes the calls that a tag holds back. Tokens of a pool come in batches, and all who wait for a tag may have theirs at one
// moment: what has ended in the last second counts.
type hold struct {
	quota   *Quota // in force; nil: it is a pause
	name    string
	reason  Reason
	callers int // that wait, or did
	tags    int // that hold callers for the same reason; the fields above are of the worst of them, callers of all
	refused int64
	since   int64 // when the one that waits longest began to; 0: not known
	retry   time.Duration
}

// hold returns the calls that the tag holds back by itself.
func (g *tag) hold() hold {
	h := &g.held
	h.mu.Lock()
	defer h.mu.Unlock()
	is := hold{quota: g.quota(), name: g.name, reason: h.reason, callers: h.callers.Len(), refused: h.turnedAway}
	if first := h.callers.Front(); first != nil {
		is.since, _ = first.Value.(int64)
	}
	if h.isRecent(g.t.gate.Now()) {
		is.callers, is.refused = max(is.callers, h.peak), max(is.refused, 1)
	}
	return is
}

// worst returns the tag that holds back most callers, or else the one that refuses most, with when it would grant one token, and all the
// callers that tags hold for its reason; ok: there is one. The nil tagSet has none.
func (s *tagSet) worst() (worst hold, ok bool) {
	if s == nil {
		return worst, false
	}
	var by *tag
	callers, tags := map[Reason]int{}, map[Reason]int{}
	for _, g := range s.all() {
		is := g.hold()
		if callers[is.reason] += is.callers; is.callers > 0 || is.refused > 0 {
			tags[is.reason]++
		}
		if more := is.callers - worst.callers; more > 0 || more == 0 && is.refused > worst.refused {
			worst, by, ok = is, g, true
		}
	}
	s.held.mu.Lock()
	for name, callers := range s.held.callers {
		before := name < worst.name
		if worst.quota != nil {
			before = worst.since == 0 // nobody waits there any more
		}
		if more := callers - worst.callers; more > 0 || more == 0 && before {
			worst, ok = hold{name: name, reason: ReasonPause, callers: callers}, true
		}
	}
	s.held.mu.Unlock()
	switch {
	case !ok:
	case worst.quota == nil:
		if p, held := s.pauseOf(worst.name); held && !p.Until.IsZero() {
			worst.retry = p.Until.Sub(s.t.gate.Present())
		}
	default:
		if th, held := by.throttled(); held {
			worst.retry = th.RetryAfter
		}
		worst.callers, worst.tags = callers[worst.reason], tags[worst.reason]
	}
	return worst, ok
}

// reported returns what operators see of a tag that holds callers back, of so many that wait.
func (h *hold) reported(now int64, waiting int) sharing.Hold {
	reported := sharing.Hold{Callers: min(h.callers, waiting), Tags: h.tags}
	if h.since > 0 {
		reported.Longest = time.Duration(now - h.since)
	}
	if h.reason == ReasonBudget {
		reported.Left = h.retry
	}
	if q := h.quota; q != nil && h.reason == ReasonQuota {
		reported.Blocked, reported.Rate = q.Blocked, float64(q.Total)/q.Per.Seconds()
	}
	return reported
}

// holds reports whether a tag that holds or refuses callers, rather than the limit described by own, holds back most of them.
func (s *tagSet) holds(h hold, own Throttling, held bool) bool {
	if held && own.Reason != ReasonLimit && own.Reason != ReasonAdaptive {
		return false // a pause, or no share: nobody gets anything
	}
	if h.callers > 0 || own.Waiting > 0 {
		return h.callers >= own.Waiting // as many may be the same callers, with tokens of the tag at last
	}
	return h.refused >= s.limited.Load()
}

// countWait counts a wait for the limit to each tag.
func (l *tagView) countWait(r Reason) {
	for _, g := range l.tags {
		g.held.log.CountWait(r)
	}
}

// countRefusal counts a refusal by the limit, or by a pause, to each tag.
func (l *tagView) countRefusal(r Reason) {
	for _, g := range l.tags {
		g.held.log.CountRefusal(r)
	}
}

// turnAway counts a refusal to those of the tags that lack n tokens.
func (l *tagView) turnAway(n int, now int64, r Reason) {
	for _, g := range l.tags {
		g.mu.Lock()
		lacks := g.lacksFor(now, n)
		g.mu.Unlock()
		if lacks || len(l.tags) == 1 {
			g.turnAway(r)
		}
	}
}

// waitsInTagQueue counts a wait for the limit, and notes it as waits does.
func (l *tagView) waitsInTagQueue(n int, r Reason) (end func()) {
	r = l.reason(r)
	l.countWait(r)
	return l.waits(n, r)
}

// waits notes that n tokens are waited for in the tag queue, and why; end ends that.
func (l *tagView) waits(n int, r Reason) (end func()) {
	count := func(more int) {
		for _, g := range l.tags {
			g.waiting.Add(int64(more * n))
			g.waitInTagQueue(more, r)
		}
	}
	count(1)
	return func() { count(-1) }
}

// waitsPaused notes that so many more callers wait for the end of the pause of a tag, each for n tokens.
func (l *tagView) waitsPaused(tag string, n, more int) {
	now := l.t.gate.Now()
	for _, g := range l.tags {
		g.waiting.Add(int64(more * n))
		g.held.log.Apart(now, more, ReasonPause)
	}
	l.t.gate.Waits.Apart(now, more, ReasonPause)
	l.set.held.count(tag, more)
}

// TagWaitStats reports how much the callers of one tag were held back, for every reason.
type TagWaitStats struct {
	// Tag is a tag that has a quota by its name in the configuration; empty for all others together.
	Tag   string
	Stats []WaitStats
}

// TagWaitStats returns how much callers were held back, for each tag with a quota by name in the configuration and for all others together:
// "" first, then by name. It omits tags that were never held back. A call with several tags counts for each. nil without quotas.
func (t *Throttle) TagWaitStats() []TagWaitStats {
	if t.tags == nil {
		return nil
	}
	now := t.gate.Now()
	var out []TagWaitStats
	add := func(tag string, log *gate.WaitLog) {
		if stats := log.List(now); len(stats) > 0 {
			out = append(out, TagWaitStats{tag, stats})
		}
	}
	add("", t.tags.others)
	t.tags.mu.RLock()
	logs := maps.Clone(t.tags.logs)
	t.tags.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		add(name, logs[name])
	}
	return out
}
