package throttle

import (
	"fmt"
	"sync"
	"time"
)

// pauses is what a limiter knows of pauses, and how long it is held by them. Times are
// nanoseconds since the limiter was made. It has no clock and no lock.
type pauses struct {
	list []Paused // in force or over, at most one for each tag
	// end is when the pause is over that holds the limiter, until the same with a stagger,
	// so that the processors of a pool do not all start at one instant. never: unknown.
	// Invariant: until >= end. Both are in the past when nothing holds it.
	end, until int64
	from       int64 // when it began
	tag        string
	reason     string
	count      int64 // pauses that have held the limiter
}

// stagger returns the time by which a start after d of pause is put off: a twentieth to a tenth of
// it, at most a second. It is never less than that by which an end may be later without this processor
// being told; see consensus.Member.Pause.
func stagger(d time.Duration, chance float64) int64 {
	return int64(min(d/20, 250*time.Millisecond)) + int64(chance*float64(min(d/20, 750*time.Millisecond)))
}

// holds tells whether the limiter is held at now.
func (p *pauses) holds(now int64) bool { return now < p.until }

// left is how long it is held yet; known is false when that is until somebody resumes.
func (p *pauses) left(now int64) (d time.Duration, known bool) {
	if p.until == never {
		return 0, false
	}
	return time.Duration(max(p.until-now, 0)), true
}

// put puts a list of pauses in force at now, for a limiter with this tag. since turns a time
// into nanoseconds; chance is a number from 0 to 1.
func (p *pauses) put(list []Paused, tag string, now int64, since func(time.Time) int64, chance float64) {
	p.list = append([]Paused(nil), list...)
	end := int64(0)
	var by Paused
	for _, e := range list {
		at := int64(never)
		if !e.Until.IsZero() {
			at = since(e.Until)
		}
		if (e.Tag == "" || e.Tag == tag) && at > end {
			end, by = at, e
		}
	}
	held := p.holds(now)
	if end <= now {
		if held && p.end > now { // it ends before its time
			p.end, p.until = now, now+int64(chance*float64(min(time.Duration(now-p.from)/10, time.Second)))
		}
		return
	}
	p.tag, p.reason = by.Tag, by.Reason
	if !held || p.end <= now {
		p.from = now
		p.count++
	}
	switch moved := time.Duration(end - p.end); {
	case end == never:
		p.until = never
	case !held || p.end == never || moved > time.Second || moved < -time.Second:
		p.until = end + stagger(time.Duration(end-now), chance)
	default:
		p.until += int64(moved) // it is told a little more exactly
	}
	p.end = end
}

// add returns the list with one more pause: of two of the same tag the later end counts.
func (p *pauses) add(e Paused, now time.Time) (list []Paused, inForce Paused) {
	inForce = e
	for _, o := range p.list {
		switch {
		case !o.Until.IsZero() && !o.Until.After(now): // over
		case o.Tag != e.Tag:
			list = append(list, o)
		case o.Until.IsZero(), !e.Until.IsZero() && !o.Until.Before(e.Until):
			inForce = o
		}
	}
	return append(list, inForce), inForce
}

// without returns the list without the pause of a tag.
func (p *pauses) without(tag string) (list []Paused) {
	for _, o := range p.list {
		if o.Tag != tag {
			list = append(list, o)
		}
	}
	return list
}

// of returns the pause that a draw for a tag is under at now, beside that of the
// limiter's own tag: the one that ends last.
func (p *pauses) of(tag, own string, now time.Time) (worst Paused, paused bool) {
	for _, o := range p.list {
		concerns := o.Tag == "" || o.Tag == own || o.Tag == tag
		if !concerns || !o.Until.IsZero() && !o.Until.After(now) {
			continue
		}
		if !paused || o.Until.IsZero() || !worst.Until.IsZero() && o.Until.After(worst.Until) {
			worst, paused = o, true
		}
	}
	return worst, paused
}

// status returns the pause that holds the limiter at now, for its status; nil: none does.
// base is the moment from which times are counted.
func (p *pauses) status(now int64, base time.Time) *Paused {
	if !p.holds(now) {
		return nil
	}
	s := &Paused{Tag: p.tag, Reason: p.reason}
	if p.until != never {
		s.Until = base.Add(time.Duration(p.until))
	}
	return s
}

// A pausable is a limiter that can be paused without a pool.
type pausable interface {
	SetPauses(list []Paused)
	// known returns a copy of what it knows of pauses.
	known() pauses
	present() time.Time
	// believed is the longest time that Told believes.
	believed() time.Duration
	// alone is held while it is paused without a pool.
	localLock() *sync.Mutex
}

// pauseAlone pauses one limiter.
func pauseAlone(l pausable, e Paused, opts []PauseOption) (PauseReceipts, error) {
	s := NewPauseSettings(opts...)
	e.Tag = s.Tag
	if err := s.Check(); err != nil {
		return PauseReceipts{}, err
	}
	if err := e.Check(l.present()); err != nil {
		return PauseReceipts{}, err
	}
	l.localLock().Lock()
	defer l.localLock().Unlock()
	k := l.known()
	list, inForce := k.add(e, l.present())
	if len(list) > MaxPausedTags {
		return PauseReceipts{}, tooManyTags(e.Tag)
	}
	l.SetPauses(list)
	return PauseReceipts{Until: inForce.Until}, nil
}

func resumeAlone(l pausable, opts []PauseOption) error {
	s := NewPauseSettings(opts...)
	if err := s.Check(); err != nil {
		return err
	}
	l.localLock().Lock()
	defer l.localLock().Unlock()
	k := l.known()
	l.SetPauses(k.without(s.Tag))
	return nil
}

func tooManyTags(tag string) *PauseError {
	return &PauseError{Field: "tag", Value: fmt.Sprintf("%.40q", tag), Allowed: fmt.Sprint("one that is paused already, for ", MaxPausedTags, " tags are")}
}

// Paused tells whether a draw for a tag is paused, and until when: by a pause of everything, of
// that tag, or of the limiter's own. Only the last of these and the first hold the limiter
// itself back: a caller that tells more tags apart than the limiter asks here.
func (t *Throttle) Paused(tag string) (Paused, bool) {
	k := t.known()
	return k.of(tag, t.tag, t.present())
}

// SetPauses puts pauses in force; see PauseHolder.
func (t *Throttle) SetPauses(list []Paused) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() || t.limit.Max == 0 {
		return
	}
	now := t.now()
	t.pauses.put(list, t.tag, now, func(at time.Time) int64 { return int64(at.Sub(t.base)) }, t.chance())
	t.publish()
	t.bucket.Fence() // no draw goes by what it has read before
	t.retime(now)
	t.serve(now)
}

// paused tells whether a pause holds the Throttle at now. t.mu is held.
func (t *Throttle) paused(now int64) bool { return t.pauses.holds(now) && !skip(rulePause) }

// pauseOver tells whether the gate is shut by a pause that is over. t.mu is held.
func (t *Throttle) pauseOver() bool { return t.bucket.Gate().Paused > 0 && !t.paused(t.now()) }

func (t *Throttle) known() pauses {
	if t.limit.Max == 0 {
		return pauses{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pauses
}

func (t *Throttle) localLock() *sync.Mutex { return &t.pausing }

// Paused tells whether a draw for a tag is paused; see Throttle.Paused.
func (f *InFlight) Paused(tag string) (Paused, bool) {
	k := f.known()
	return k.of(tag, f.tag, f.present())
}

// SetPauses puts pauses in force; see PauseHolder. Calls under way go on.
func (f *InFlight) SetPauses(list []Paused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed.Load() || f.max == 0 {
		return
	}
	now := f.now()
	f.pauses.put(list, f.tag, now, func(at time.Time) int64 { return int64(at.Sub(f.base)) }, f.chance())
	f.stopped.Store(f.pauses.until)
	f.noteHeld()
	f.serve()
	f.rouse(now)
}

// paused tells whether a pause holds the InFlight. f.mu is held.
func (f *InFlight) paused() bool {
	return f.pauses.until > 0 && f.pauses.holds(f.now()) && !skip(rulePause)
}

func (f *InFlight) known() pauses {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pauses
}

func (f *InFlight) localLock() *sync.Mutex { return &f.pausing }

// rouse sees to it that the first waiter looks again when the pause is over, and that those
// learn of it whose deadlines come before. f.mu is held.
func (f *InFlight) rouse(now int64) {
	if f.waker != nil {
		f.waker.Stop()
		f.waker = nil
	}
	if !f.pauses.holds(now) {
		return
	}
	for w := f.queue.First; w != nil; w = w.Next() {
		w.Attempt.Wake()
	}
	if left, known := f.pauses.left(now); known {
		f.waker = f.afterFunc(left, f.onPauseOver)
	}
}

func (f *InFlight) onPauseOver() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noteHeld()
	f.serve()
	f.rouse(f.now())
}
