package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// pauseSchedules are the directed schedules of pauses.
var pauseSchedules = []directed{
	{
		name: "who is paused draws nothing", rule: "pause",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.pause(a, 30*time.Second)
			w.run(w.now + 20*time.Second)
			requirePaused(t, w, a, b)
			w.run(w.now + 30*time.Second)
			requireResumed(t, w, a, b)
		},
	},
	{
		name: "a shorter pause comes after a longer one", rule: "pause-later",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.cutOff(b) // it knows nothing of the first pause when it makes another
			w.pause(a, time.Minute)
			w.pause(b, 10*time.Second)
			w.until(t, func() bool { return w.onPauseRecord() > 0 })
			w.kill(a) // it would tell its pause again
			w.reach(b)
			w.run(w.now + 40*time.Second)
			requirePaused(t, w, b)
			w.run(w.now + 40*time.Second)
			requireResumed(t, w, b)
		},
	},
	{
		name: "news of a pause come after somebody has resumed", rule: "pause-news",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.pause(a, 0)
			w.until(t, func() bool { return w.onPauseRecord() > 0 })
			old := driver.DocumentReport{Name: pauseDocument, Version: w.onPauseRecord(), Body: w.pauseBody()}
			w.resumeAll()
			w.run(w.now + 5*time.Second)
			requireResumed(t, w, a, b)
			news, err := protocol.PauseNotification("late", &old)
			require.NoError(t, err)
			w.hear(b, old.Version, news)
			if list := b.proc.Orders(b.clock.read(w.now), 0, epoch).Pauses; len(list) > 0 {
				w.violatef(CheckPause, "%s is paused by news of what is over: %v", b, list)
			}
		},
	},
	{
		// The pool's clock has not counted an hour of sleep: that of the next record is ahead.
		name: "a wiped store is given a pause back", rule: "pause-clock",
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.until(t, func() bool { return near(a, 100) })
			w.leave(a)
			w.run(w.now + time.Hour)
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.pause(a, 10*time.Minute)
			w.run(w.now + 10*time.Second)
			w.kill(a) // who has paused would tell it again
			w.store.restart(w, driver.Record{}, 0)
			w.store.newIdentity()
			w.until(t, func() bool { return w.onPauseRecord() > 0 })
			w.kill(b) // it would notice that it ends too early
			c := w.join("c")
			w.run(w.now + 5*time.Minute)
			requirePaused(t, w, c)
			w.run(w.now + 6*time.Minute)
			requireResumed(t, w, c)
		},
	},
	{
		// The time of its first step is not known, and passes for 0.
		name: "a wiped store that learns its time late is given a pause back",
		found: "Paused processors drew (seed 369): a pause that was given back with the second answer of a wiped store, written on a clock that " +
			"showed next to nothing, was over when that clock knew its time. A logical time of 0 is none.",
		plan: func(p *plan) { p.store = storeDeferred },
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.pause(b, 10*time.Minute)
			w.run(w.now + 10*time.Second)
			w.kill(b)
			w.store.restart(w, driver.Record{}, 0)
			w.store.newIdentity()
			w.until(t, func() bool { return w.store.rec.Revision > 0 })
			w.cut(a, up) // what it gives back at once is lost
			w.run(w.now + 300*time.Millisecond)
			w.reach(a)
			w.run(w.now + 20*time.Second)
			b = w.join("b")
			w.run(w.now + 20*time.Second)
			requirePaused(t, w, a, b)
			w.run(w.now + 10*time.Minute)
			requireResumed(t, w, a, b)
		},
	},
	{
		// a has loaded many changes of the document, b none: its pause is made from nothing.
		name: "a wiped store is given back what is older than a pause",
		found: "A paused process drew (seed 342): in a store that had been emptied it paused before those came back who remembered " +
			"pauses that were over, in a document of a higher version. Who has paused tells it again while it is not on record.",
		run: func(t *testing.T, w *world) {
			a := w.remembersMore(t)
			b := w.join("b")
			w.until(t, func() bool { return w.store.rec.Revision > 1 })
			w.orders.active = nil
			w.pause(b, time.Minute)
			w.until(t, func() bool { return w.onPauseRecord() > 0 })
			require.Less(t, w.onPauseRecord(), driver.Version(a.proc.View(w.now).Generation))
			w.reach(a)
			w.run(w.now + 10*time.Second)
			requirePaused(t, w, a, b)
			w.run(w.now + 20*time.Second)
			requirePaused(t, w, a, b)
			w.run(w.now + 45*time.Second)
			requireResumed(t, w, a, b)
		},
	},
	{
		// The same, and who has paused is gone: all others who know of the pause tell it again.
		name: "what a wiped store is given back lacks a pause", rule: "pause-kept",
		found: "Paused processes drew (seeds 6892, 9881, 9942): a store had fallen back, and somebody gave back a document of a higher version, made " +
			"before the pause and without it. Whoever goes by a pause that is missing from the next document goes on with it, and tells it " +
			"again, unless somebody has resumed since.",
		run: func(t *testing.T, w *world) {
			a := w.remembersMore(t)
			b, c := w.join("b"), w.join("c")
			w.until(t, func() bool { return w.store.rec.Revision > 1 })
			w.orders.active = nil
			w.pause(b, time.Minute)
			w.run(w.now + 5*time.Second)
			require.Less(t, w.onPauseRecord(), driver.Version(a.proc.View(w.now).Generation))
			w.kill(b)
			w.cutOff(c)
			w.store.restart(w, driver.Record{}, 0) // once more, so that a sees nothing in the place of what it gives back
			w.store.newIdentity()
			w.reach(a)
			w.until(t, func() bool { return w.onPauseRecord() > 0 })
			w.reach(c)
			w.run(w.now + 10*time.Second)
			requirePaused(t, w, a, c)
			w.run(w.now + 20*time.Second)
			requirePaused(t, w, a, c)
			w.run(w.now + 45*time.Second)
			requireResumed(t, w, a, c)
		},
	},
	{
		// The same, and nobody else knows of the pause: who gives back what it remembers sees it in its place.
		name: "a pause in the place of what is given back", rule: "pause-seen",
		found: "Paused processes drew (seed 14405): in a store that had been emptied twice a process paused that another one had replaced, so that it " +
			"could not tell its pause again when somebody gave back a document of a higher version, without it. Whoever gives back what " +
			"the store has lost takes the pauses over that it sees there, and gives it back only in the place of what it has seen.",
		run: func(t *testing.T, w *world) {
			a := w.remembersMore(t)
			b := w.pausedMeanwhile(t, a, time.Minute)
			w.kill(b)
			w.reach(a)
			w.run(w.now + 10*time.Second)
			requirePaused(t, w, a)
			w.run(w.now + 20*time.Second)
			requirePaused(t, w, a)
			w.run(w.now + 45*time.Second)
			requireResumed(t, w, a)
		},
	},
	{
		// The same, and who gives back has seen that there was nothing.
		name: "a pause where nothing was when it was seen", rule: "return-seen",
		run: func(t *testing.T, w *world) {
			a := w.remembersMore(t)
			w.reach(a)
			w.until(t, func() bool { return w.store.rec.Revision > 0 })
			w.cut(a, up) // what it gives back is lost
			w.run(w.now + 300*time.Millisecond)
			require.Zero(t, w.onPauseRecord())
			b := w.pausedMeanwhile(t, a, time.Minute)
			w.kill(b)
			w.reach(a)
			w.run(w.now + 10*time.Second)
			requirePaused(t, w, a)
			w.run(w.now + 65*time.Second)
			requireResumed(t, w, a)
		},
	},
	{
		name: "somebody resumes in the place of what is given back",
		run: func(t *testing.T, w *world) {
			a := w.seesOnly(t, time.Minute)
			w.resumeAll()
			w.reach(a)
			w.run(w.now + 10*time.Second)
			requireResumed(t, w, a)
		},
	},
	{
		name: "somebody resumes, and somebody pauses again, in the place of what is given back",
		run: func(t *testing.T, w *world) {
			a := w.seesOnly(t, 0)
			w.resumeAll()
			c := w.pausedMeanwhile(t, a, time.Minute)
			w.kill(c)
			w.reach(a)
			w.run(w.now + 20*time.Second)
			requirePaused(t, w, a)
			w.run(w.now + time.Minute)
			requireResumed(t, w, a)
		},
	},
	{
		// z has not heard that somebody has resumed, and is the first to give back what it remembers.
		name: "an ended pause in the place of what is given back, and another one that is asked for",
		found: "A process that had paused the pool drew (seed 17846): in a store that had been emptied it saw an older pause, which somebody had " +
			"ended and another one had given back, and took it for a longer form of its own, so that both ended. A pause that somebody has " +
			"ended is not taken over.",
		run: func(t *testing.T, w *world) {
			a, z := w.join("a"), w.join("z")
			w.until(t, func() bool { return near(a, 50) && near(z, 50) })
			w.pause(z, 10*time.Minute)
			w.run(w.now + 5*time.Second)
			requirePaused(t, w, a, z)
			w.cutOff(z)
			for range 4 { // so that its version is higher than what z makes of what it remembers
				w.resumeAll()
				w.run(w.now + 5*time.Second)
			}
			requireResumed(t, w, a)
			w.cutOff(a)
			w.store.restart(w, driver.Record{}, 0)
			w.store.newIdentity()
			w.reach(z)
			w.until(t, func() bool { return w.onPauseRecord() > 0 })
			require.Less(t, w.onPauseRecord(), w.orders.resumed)
			w.kill(z)
			w.pause(a, time.Minute)
			w.reach(a)
			w.run(w.now + 10*time.Second)
			requirePaused(t, w, a)
			w.run(w.now + 40*time.Second)
			requirePaused(t, w, a)
			w.run(w.now + 20*time.Second)
			requireResumed(t, w, a)
		},
	},
	{
		name: "a store falls back to a pause that somebody has ended",
		run: func(t *testing.T, w *world) {
			a, b := w.join("a"), w.join("b")
			w.until(t, func() bool { return near(a, 50) && near(b, 50) })
			w.pause(a, 0)
			w.run(w.now + 10*time.Second)
			requirePaused(t, w, a, b)
			older, written := w.store.copied(), w.store.written
			w.resumeAll()
			w.run(w.now + 10*time.Second)
			requireResumed(t, w, a, b)
			w.store.restart(w, older, written)
			w.store.newIdentity()
			require.Less(t, w.onPauseRecord(), w.orders.resumed)
			for range 100 {
				w.run(w.now + 100*time.Millisecond)
				requireResumed(t, w, a, b)
			}
			require.Greater(t, w.onPauseRecord(), w.orders.resumed)
		},
	},
	{
		name: "the pool sleeps through its pause", rule: "pause-slept",
		run: func(t *testing.T, w *world) {
			a := w.join("a")
			w.until(t, func() bool { return near(a, 100) })
			w.pause(a, 30*time.Minute)
			w.run(w.now + 10*time.Second)
			w.leave(a)
			w.run(w.now + time.Hour)
			a = w.join("a")
			w.run(w.now + time.Minute)
			requireResumed(t, w, a)
			require.True(t, w.violation != nil || near(a, 100))
		},
	},
}

// remembersMore cuts off a process that has loaded many changes of the document, of pauses that are over, and
// empties the store.
func (w *world) remembersMore(t *testing.T) *process {
	t.Helper()
	a := w.join("a")
	w.until(t, func() bool { return near(a, 100) })
	for range 5 {
		w.pause(a, 2*time.Second)
		w.run(w.now + 5*time.Second)
	}
	w.cutOff(a)
	w.store.restart(w, driver.Record{}, 0)
	w.store.newIdentity()
	return a
}

// pausedMeanwhile has a process pause the pool for d, 0 being until somebody resumes, while one is away that remembers more.
func (w *world) pausedMeanwhile(t *testing.T, a *process, d time.Duration) *process {
	t.Helper()
	b := w.join("b")
	w.until(t, func() bool { return w.store.rec.Revision > 1 })
	w.run(w.now + 2*time.Second) // it knows of resumptions
	w.orders.active = nil
	before := w.onPauseRecord()
	w.pause(b, d)
	w.until(t, func() bool { return w.onPauseRecord() > before })
	require.Less(t, w.onPauseRecord(), driver.Version(a.proc.View(w.now).Generation))
	return b
}

// seesOnly returns a process that remembers more than a store that was emptied, and is cut off once it has seen that somebody has
// paused there for d, who is gone: what it gives back is lost.
func (w *world) seesOnly(t *testing.T, d time.Duration) *process {
	t.Helper()
	a := w.remembersMore(t)
	w.kill(w.pausedMeanwhile(t, a, d))
	w.reach(a)
	asked := w.store.rec.Revision
	w.until(t, func() bool { return w.store.rec.Revision > asked })
	w.cut(a, up)
	w.run(w.now + 10*time.Second)
	requirePaused(t, w, a)
	require.Less(t, w.onPauseRecord(), driver.Version(a.proc.View(w.now).Generation))
	return a
}

// requirePaused fails, unless something else is wrong already, if one of the processes is not paused.
func requirePaused(t *testing.T, w *world, all ...*process) {
	t.Helper()
	for _, p := range all {
		if w.violation == nil && len(p.proc.Orders(p.clock.read(w.now), 0, epoch).Pauses) == 0 {
			w.violatef(CheckPause, "%s is not paused", p)
		}
	}
}

func requireResumed(t *testing.T, w *world, all ...*process) {
	t.Helper()
	for _, p := range all {
		if list := p.proc.Orders(p.clock.read(w.now), 0, epoch).Pauses; len(list) > 0 {
			w.violatef(CheckPause, "%s is still paused: %v", p, list)
		}
	}
}

// onPauseRecord is the version of the pauses on record.
func (w *world) onPauseRecord() driver.Version { return w.store.version(pauseDocument) }

func (w *world) pauseBody() []byte {
	docs := w.store.rec.Documents
	i := slices.IndexFunc(docs, func(d driver.Document) bool { return d.Name == pauseDocument })
	return slices.Clone(docs[i].Body)
}
