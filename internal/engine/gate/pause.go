package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// errNoLimit is the error for pausing a limiter that never refuses anything.
var errNoLimit = errors.New("throttle: there is no limit that could be paused")

// DefaultMaxRetryAfter is the longest time that RetryAfter believes unless Options say otherwise.
const DefaultMaxRetryAfter = 5 * time.Minute

// A Pool serves a limiter's requests other than shares; see sharing.Pool.
type Pool interface {
	Pause(ctx context.Context, until time.Time, reason string, opts ...limit.PauseOption) (limit.PauseReceipts, error)
	Resume(ctx context.Context, opts ...limit.PauseOption) error
	RetryAfter(until time.Time, reason string)
}

// usable returns the error for a limiter that cannot be paused any more, or never could.
func (g *Gate) usable() error {
	switch {
	case g.off:
		return errNoLimit
	case g.Closed.Load():
		return sharing.ErrClosed
	}
	return nil
}

// Pause pauses all processors of the pool, or this limiter alone when there is no pool; see throttle.Throttle.Pause.
func (g *Gate) Pause(ctx context.Context, until time.Time, reason string, opts ...limit.PauseOption) (limit.PauseReceipts, error) {
	if err := g.usable(); err != nil {
		return limit.PauseReceipts{}, err
	}
	if g.pool != nil {
		return g.pool.Pause(ctx, until, reason, opts...)
	}
	return g.pauseSingle(limit.Paused{Until: until, Reason: reason}, opts)
}

// Resume ends a pause before its time.
func (g *Gate) Resume(ctx context.Context, opts ...limit.PauseOption) error {
	if err := g.usable(); err != nil {
		return err
	}
	if g.pool != nil {
		return g.pool.Resume(ctx, opts...)
	}
	s, err := sharing.PauseSettings(opts...)
	if err != nil {
		return err
	}
	g.pausing.Lock()
	defer g.pausing.Unlock()
	known := g.known()
	g.SetPauses(known.without(s.Tag))
	return nil
}

// pauseSingle pauses a limiter that has no pool.
func (g *Gate) pauseSingle(e limit.Paused, opts []limit.PauseOption) (limit.PauseReceipts, error) {
	s, err := sharing.PauseSettings(opts...)
	if err != nil {
		return limit.PauseReceipts{}, err
	}
	e.Tag = s.Tag
	if err := e.Check(g.Present()); err != nil {
		return limit.PauseReceipts{}, err
	}
	g.pausing.Lock()
	defer g.pausing.Unlock()
	known := g.known()
	list, inForce := known.add(e, g.Present())
	tags := (&Pauses{list: list}).Tags("")
	if len(tags) >= bounds.MaxPausedTags { // one place is for the pause of everything
		return limit.PauseReceipts{}, &limit.PauseError{
			Field: "tag", Value: fmt.Sprintf("%.40q", e.Tag),
			Allowed: fmt.Sprint("one that is paused already, or none for everything: ", bounds.MaxPausedTags-1, " tags are paused"),
		}
	}
	g.SetPauses(list)
	return limit.PauseReceipts{Until: inForce.Until}, nil
}

// SetPauses puts pauses in force in place of the previous ones.
func (g *Gate) SetPauses(list []limit.Paused) {
	g.Lock()
	defer g.Unlock()
	if g.usable() != nil {
		return
	}
	now := g.Now()
	g.Pauses.Put(list, g.Tag, now, g.At, g.chance())
	g.changed(now)
}

// PausedFor reports whether a draw for a tag is paused: by a pause of everything, of that tag, or of the limiter's own.
func (g *Gate) PausedFor(tag string) (limit.Paused, bool) {
	known := g.known()
	return known.of(tag, g.Tag, g.Present())
}

// known returns a copy of the limiter's pauses.
func (g *Gate) known() Pauses {
	g.Lock()
	defer g.Unlock()
	return g.Pauses
}

// RetryAfter reports that the called service has asked this processor not to call again before a time. The pool judges that, or this
// limiter is paused when it has no pool.
func (g *Gate) RetryAfter(until time.Time, reason string) {
	now := g.Present()
	if g.usable() != nil || !until.After(now) {
		return
	}
	if latest := now.Add(g.longest()); until.After(latest) {
		until = latest
	}
	reason = presentable(reason)
	if g.pool != nil {
		g.pool.RetryAfter(until, reason)
	} else {
		_, _ = g.pauseSingle(limit.Paused{Until: until, Reason: reason}, nil) // what can be wrong was put right
	}
}

// longest is the longest time that RetryAfter believes.
func (g *Gate) longest() time.Duration {
	if g.MaxRetryAfter <= 0 {
		return DefaultMaxRetryAfter
	}
	return min(g.MaxRetryAfter, bounds.MaxPause)
}

// presentable makes a text the reason of a pause: without control characters, and of the allowed length.
func presentable(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r // the replacement character for what is not UTF-8
	}, reason)
	if most := bounds.MaxPauseReason; len(reason) > most {
		for !utf8.RuneStart(reason[most]) {
			most--
		}
		reason = reason[:most]
	}
	return reason
}
