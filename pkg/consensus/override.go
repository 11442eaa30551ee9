package consensus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
)

// limitDocument is the name of the document that overrides the limit.
const limitDocument = "limit"

// MaxRaise is how many times the configured limit an override may be.
const MaxRaise = ceiling.MaxRaise

// An Override is a limit that the processors of a pool use instead of the one that
// they are configured with. The zero Override is none.
type Override struct {
	// Max is the number of tokens per Per, over the whole pool: 1 to 1e9; 0: no
	// override. The burst follows in proportion.
	Max int
	// Per is the period: 1 ms to 31 days, in whole microseconds. 0: the period
	// that is configured; SaveOverride fills it in when a processor is live.
	Per time.Duration
}

// Validate returns a *RequestError for the first field out of bounds, or nil.
func (o Override) Validate() error {
	switch {
	case o.Max < 0 || o.Max > maxNoteTokens:
		return &RequestError{Field: "Max", Value: fmt.Sprint(o.Max), Allowed: "0 (no override) to 1000000000"}
	case o.Per != 0 && (o.Per.Microseconds() < minNotePer || o.Per.Microseconds() > maxNotePer || o.Per%time.Microsecond != 0):
		return &RequestError{Field: "Per", Value: o.Per.String(), Allowed: "1ms to 744h in whole microseconds, or 0 for the configured period"}
	case o.Per != 0 && o.Max > int(o.Per):
		return &RequestError{Field: "Max per " + o.Per.String(), Value: fmt.Sprint(o.Max), Allowed: "at most 1000000000 tokens per second"}
	}
	return nil
}

// rate is the override as the law takes it.
func (o Override) rate() ceiling.Rate { return ceiling.Rate{Max: int64(o.Max), Per: o.Per} }

// overrideJSON is the body of the document: {"max":600,"per":"1m0s"}.
type overrideJSON struct {
	Max *int   `json:"max"`
	Per string `json:"per,omitempty"`
}

// body returns the document's body.
func (o Override) body() []byte {
	j := overrideJSON{Max: &o.Max}
	if o.Per != 0 {
		j.Per = o.Per.String()
	}
	b, _ := json.Marshal(j) //nolint:errchkjson // a number and a text can always be marshalled
	return b
}

// parseOverride reads a document's body. What it does not know in it may change the
// limit in a way that nothing is known of, and is an error.
func parseOverride(body []byte) (Override, error) {
	var j overrideJSON
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		// As text: it may quote a name of any length.
		return Override{}, fmt.Errorf("consensus: the document %q is not an override: %.200s", limitDocument, err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || j.Max == nil {
		return Override{}, fmt.Errorf(`consensus: the document %q is not an override, allowed: {"max":600,"per":"1m"}`, limitDocument)
	}
	o := Override{Max: *j.Max}
	if j.Per != "" {
		per, err := time.ParseDuration(j.Per)
		if err != nil || per == 0 {
			return Override{}, &RequestError{Field: "per of the document " + limitDocument, Value: fmt.Sprintf("%.40q", j.Per), Allowed: "a duration such as 1m"}
		}
		o.Per = per
	}
	if err := o.Validate(); err != nil {
		return Override{}, err
	}
	return o, nil
}

// fits refuses an override that is too high for what a live processor is configured with,
// and one of which nobody who is live would take notice.
func (o Override) fits(roster []RosterRow) error {
	if o.Max == 0 {
		return nil
	}
	heeded := len(roster) == 0
	for i := range roster {
		n, ok := parseNote(roster[i].Note)
		if !ok {
			continue
		}
		heeded = true
		raise, why := int64(MaxRaise), fmt.Sprint("at most ", MaxRaise, " times ")
		if n.hard {
			raise, why = 1, "at most the hard limit "
		}
		top := ceiling.Rate{Max: n.limit.Max * raise, Per: n.limit.Per}
		if top.Below(o.rate()) {
			return &RequestError{
				Field: "Max per " + o.Per.String(), Value: fmt.Sprint(o.Max),
				Allowed: fmt.Sprintf("%s%d per %s, which processor %q is configured with", why, n.limit.Max, n.limit.Per, roster[i].ID),
			}
		}
	}
	if !heeded {
		return &RequestError{Field: "Max", Value: fmt.Sprint(o.Max), Allowed: "0, for no live processor of the pool has told a limit that could be overridden"}
	}
	return nil
}

// configured returns the period of the lowest limit that a live processor is
// configured with; 0: nobody tells.
func configured(roster []RosterRow) time.Duration {
	var lowest ceiling.Rate
	for i := range roster {
		if n, ok := parseNote(roster[i].Note); ok && (lowest.Max == 0 || n.limit.Below(lowest)) {
			lowest = n.limit
		}
	}
	return lowest.Per
}

// SaveOverride makes o the limit of a pool, in place of any other override, also of an earlier one that the
// store has lost and a processor gives back. Every
// processor uses it from its next sync on; slots that the store has issued already stay. The pool must have
// a record: a processor has been in it. ctx bounds the call.
//
// Errors: *RequestError when o is invalid, above MaxRaise times the limit that a live
// processor is configured with, above its hard limit, or when no live processor has a limit
// of tokens; one that wraps ErrNoPool;
// *ConflictError when others keep changing it at the same time; those of the store.
func SaveOverride(ctx context.Context, s Store, pool string, o Override) error {
	if err := o.Validate(); err != nil {
		return err
	}
	var err error
	for range 5 { // somebody else may change it meanwhile
		var docs []Document
		var roster []RosterRow
		if docs, roster, err = load(ctx, s, pool); err != nil {
			return fmt.Errorf("consensus: loading pool %q: %w", pool, err)
		}
		next := o
		if next.Max > 0 && next.Per == 0 {
			next.Per = configured(roster)
			if err := next.Validate(); err != nil {
				return err
			}
		}
		if err := next.fits(roster); err != nil {
			return err
		}
		base := documentOf(docs, limitDocument).Version
		// By the wall clock of whoever sets it. It decides nothing but which one stays where the store has forgotten another.
		version := LaterVersion(base, time.Now(), uint16(rand.Uint32()))
		report := DocumentReport{Name: limitDocument, Version: version, Base: base, Body: next.body()}
		_, err = s.Save(ctx, pool, report)
		if conflict := (*ConflictError)(nil); !errors.As(err, &conflict) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("consensus: saving the override of pool %q: %w", pool, err)
	}
	return nil
}

// ClearOverride ends the override of a pool, if there is one: the limit is again the
// lowest that a live processor is configured with; where the store issues tokens and the override was
// lower, after a removal time. It has the last word, too, where none is on record: the store may have lost one.
// Errors are those of SaveOverride.
func ClearOverride(ctx context.Context, s Store, pool string) error {
	return SaveOverride(ctx, s, pool, Override{})
}

// LoadOverride returns the override of a pool; the zero Override if there is none.
// Errors: one that wraps ErrNoPool, those of the store, and one for a document that this
// release cannot read.
func LoadOverride(ctx context.Context, s Store, pool string) (Override, error) {
	docs, _, err := load(ctx, s, pool)
	if err != nil {
		return Override{}, fmt.Errorf("consensus: loading pool %q: %w", pool, err)
	}
	doc := documentOf(docs, limitDocument)
	if doc.Version == 0 {
		return Override{}, nil
	}
	return parseOverride(doc.Body)
}

// documentOf returns the document of that name; version 0 if there is none.
func documentOf(docs []Document, name string) Document {
	for _, d := range docs {
		if d.Name == name {
			return d
		}
	}
	return Document{Name: name}
}
