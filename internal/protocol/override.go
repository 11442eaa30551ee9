package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// An Override is a limit that the processors of a pool use instead of the configured
// one. The zero Override is none.
type Override struct {
	// Max is the number of tokens per Per, over the whole pool: 1 to 1e9; 0: no
	// override. The burst follows in proportion.
	Max int
	// Per is the period: 1 ms to 31 days, in whole microseconds. 0: the configured
	// period; SaveOverride fills it in when a processor is live.
	Per time.Duration
	// Until is when it ends, by the wall clock of the process that saved it; the zero Time: when it is cleared.
	// The end in force is on the pool's clock, like that of a pause.
	Until time.Time
	// Reason says why, in up to 128 bytes of text, and By says who, in up to 64.
	Reason, By string

	ending overrideEnd
}

// Validate returns a *RequestError for the first field out of bounds, or nil.
func (o Override) Validate() error {
	switch {
	case o.Max < 0 || o.Max > maxNoteTokens:
		return &driver.RequestError{Field: "Max", Value: fmt.Sprint(o.Max), Allowed: "0 (no override) to 1000000000"}
	case o.Per != 0 && (o.Per.Microseconds() < minNotePer || o.Per.Microseconds() > maxNotePer || o.Per%time.Microsecond != 0):
		return &driver.RequestError{Field: "Per", Value: duration.Short(o.Per), Allowed: "1ms to 744h in whole microseconds, or 0 for the configured period"}
	case o.Per != 0 && o.Max > int(o.Per):
		return &driver.RequestError{Field: "Max per " + duration.Short(o.Per), Value: fmt.Sprint(o.Max), Allowed: "at most 1000000000 tokens per second"}
	}
	if err := (&limit.Paused{Reason: o.Reason, By: o.By}).Check(time.Time{}); err != nil {
		return badWords("of the override", err)
	}
	return nil
}

// badWords makes an error of a reason or an author a *RequestError.
func badWords(of string, err error) error {
	bad := (*limit.PauseError)(nil)
	if !errors.As(err, &bad) {
		return err
	}
	return &driver.RequestError{Field: bad.Field + " " + of, Value: bad.Value, Allowed: bad.Allowed}
}

// lasting returns the override as it is saved at now: with its remaining time. The error is a *RequestError.
func (o Override) lasting(now time.Time) (Override, error) {
	if o.ending = (overrideEnd{}); o.Until.IsZero() || o.Max == 0 {
		o.Until = time.Time{}
		return o, nil
	}
	left, err := timeLeft("of the override", o.Until, now)
	o.ending.left, o.Until = left, o.Until.UTC().Truncate(time.Second)
	return o, err
}

// timeLeft returns how long something lasts that ends at until. The error is a *RequestError.
func timeLeft(of string, until, now time.Time) (time.Duration, error) {
	left := until.Sub(now)
	if left <= 0 || left > bounds.MaxPause {
		return 0, &driver.RequestError{
			Field: "Until " + of, Value: "in " + duration.Short(left),
			Allowed: "the zero Time (until it is cleared), or within " + duration.Short(bounds.MaxPause) + " from now",
		}
	}
	return max(left.Truncate(time.Microsecond), time.Microsecond), nil
}

// rate is the override as the law takes it.
func (o Override) rate() ceiling.Rate { return ceiling.Rate{Max: int64(o.Max), Per: o.Per} }

// overrideJSON is the body of the document: {"max":600,"per":"1m0s"}, and more with an end, a reason or an author.
type overrideJSON struct {
	Max *int   `json:"max"`
	Per string `json:"per,omitempty"`
	endJSON
}

// body returns the document's body.
func (o Override) body() ([]byte, error) {
	j := overrideJSON{Max: &o.Max, endJSON: o.entry().end()}
	if o.Per != 0 {
		j.Per = o.Per.String()
	}
	return json.Marshal(j)
}

// parseOverride reads a document's body. An unknown field is an error: it may change the limit
// in a way that this release does not know.
func parseOverride(body []byte) (Override, error) {
	var j overrideJSON
	if err := decodeStrictly(body, &j); err != nil {
		return Override{}, fmt.Errorf("consensus: the document %q is not an override: %.200s", limitDocument, err.Error())
	}
	if j.Max == nil {
		return Override{}, fmt.Errorf(`consensus: the document %q is not an override, allowed: {"max":600,"per":"1m"}`, limitDocument)
	}
	e, err := j.read(limitDocument)
	if err != nil {
		return Override{}, err
	}
	o := Override{Max: *j.Max, Until: e.until, Reason: e.reason, By: e.by, ending: overrideEnd{e.at, e.left}}
	if e.left == 0 && (e.at > 0 || !e.until.IsZero()) {
		return Override{}, fmt.Errorf("consensus: the override in the document %q has a time out of bounds", limitDocument)
	}
	if j.Per != "" {
		if o.Per, err = time.ParseDuration(j.Per); err != nil || o.Per == 0 {
			return Override{}, &driver.RequestError{
				Field: "per of the document " + limitDocument, Value: fmt.Sprintf("%.40q", j.Per), Allowed: "a duration such as 1m",
			}
		}
	}
	if err := o.Validate(); err != nil {
		return Override{}, err
	}
	return o, nil
}

// fits refuses an override that is too high for the configured limit of a live processor,
// and one that no live processor would use.
func (o Override) fits(roster []driver.RosterRow) error {
	if o.Max == 0 {
		return nil
	}
	obeyed, slots := len(roster) == 0, false
	for i := range roster {
		n := NoteIn(roster[i].Note)
		if n.limit.Max == 0 {
			slots = slots || n.standing.Slots > 0
			continue
		}
		obeyed = true
		raise, why := ceiling.MaxRaise, fmt.Sprint("at most ", ceiling.MaxRaise, " times ")
		if n.hard {
			raise, why = 1, "at most the hard limit "
		}
		top := ceiling.Rate{Max: n.limit.Max * raise, Per: n.limit.Per}
		if top.Below(o.rate()) {
			return &driver.RequestError{
				Field: "Max per " + duration.Short(o.Per), Value: fmt.Sprint(o.Max),
				Allowed: fmt.Sprintf("%s%d per %s, which pod %q is configured with", why, n.limit.Max, duration.Short(n.limit.Per), roster[i].ID),
			}
		}
	}
	if !obeyed {
		why := "no live pod has reported a limit that could be overridden"
		if slots {
			why = "the pool limits calls in flight, and only a limit of tokens can be overridden"
		}
		return &driver.RequestError{Field: "Max", Value: fmt.Sprint(o.Max), Allowed: "0, for " + why}
	}
	return nil
}

// configured returns the period of the lowest configured limit of a live processor; 0: no
// note has one.
func configured(roster []driver.RosterRow) time.Duration {
	var lowest ceiling.Rate
	for i := range roster {
		if n := NoteIn(roster[i].Note); lowest.Max == 0 || n.limit.Below(lowest) { // the zero rate is below no other
			lowest = n.limit
		}
	}
	return lowest.Per
}

// SaveOverride makes o the limit of a pool, in place of any other override. Every processor
// uses it from its next sync on; slots that the store has already issued stay. After its end, the
// next sync of a processor clears it. An earlier override that the store has lost does not come back. The pool must have a record: a
// processor has been in it. SaveOverride blocks until the store has answered; ctx bounds it.
//
// Errors: *RequestError when o is invalid, or no live processor has a limit of tokens. It is one
// as well when o is above 64 times the configured limit, or above the hard limit, of a live processor.
// Others: one that wraps ErrNoPool; *ConflictError when others keep changing it at the same time; those of
// the store.
func SaveOverride(ctx context.Context, s driver.Store, pool string, o Override) error {
	if err := o.Validate(); err != nil {
		return err
	}
	o, err := o.lasting(time.Now())
	if err != nil {
		return err
	}
	_, err = limitDoc.Change(ctx, s, pool, func(r pooldoc.Recorded[Override]) (Override, bool, error) {
		next := o // whatever is on record, even if this release cannot read it
		if next.Max > 0 && next.Per == 0 {
			next.Per = configured(r.Roster)
			if err := next.Validate(); err != nil {
				return next, false, err
			}
		}
		return next, true, next.fits(r.Roster)
	})
	return saving(err, "consensus: saving the override of pool %q: %w", pool)
}

// saving wraps the error of a change by a format for the pool's name and the error. It returns
// a *RequestError as it is.
func saving(err error, format, pool string) error {
	if bad := (*driver.RequestError)(nil); err == nil || errors.As(err, &bad) {
		return err
	}
	return fmt.Errorf(format, pool, err)
}

// ClearOverride ends the override of a pool, if there is one. The limit is again the lowest
// configured limit of a live processor. Where the store issues permits and the override was
// lower, that takes a removal time. An override that the store has lost does not come back.
// A ramp, or what refusals have left of the limit, begins again if this release cannot read its state. Errors are those of SaveOverride.
func ClearOverride(ctx context.Context, s driver.Store, pool string) error {
	err := SaveOverride(ctx, s, pool, Override{})
	if err == nil {
		err = renew(ctx, s, pool, &rampDoc)
	}
	if err == nil {
		err = renew(ctx, s, pool, &backoffDoc)
	}
	return saving(err, "consensus: ending what the limit of pool %q cannot be read from: %w", pool)
}

// renew replaces a state that cannot be read by none, from which processors begin again.
func renew[S state.Moving[S]](ctx context.Context, s driver.Store, pool string, doc *pooldoc.Doc[state.Shared[S]]) error {
	_, err := doc.Change(ctx, s, pool, func(r pooldoc.Recorded[state.Shared[S]]) (none state.Shared[S], save bool, err error) {
		return none, r.Err != nil, nil
	})
	return err
}

// LoadOverride returns the override of a pool; the zero Override if there is none.
// Errors: one that wraps ErrNoPool, those of the store, and one for a document that this
// release cannot read.
func LoadOverride(ctx context.Context, s driver.Store, pool string) (Override, error) {
	docs, _, err := pooldoc.Load(ctx, s, pool)
	if err != nil {
		return Override{}, fmt.Errorf("consensus: loading pool %q: %w", pool, err)
	}
	return limitDoc.Read(limitDoc.In(docs))
}
