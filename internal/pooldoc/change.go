package pooldoc

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// attempts bounds the tries of a change while others change the same document.
const attempts = 5

// Retry calls try until it returns something other than a *driver.ConflictError, at most five times, and returns the last result.
func Retry(try func() error) (err error) {
	for range attempts {
		conflict := (*driver.ConflictError)(nil)
		if err = try(); !errors.As(err, &conflict) {
			return err
		}
	}
	return err
}

// Load is Store.Load with a checked answer. Errors: those of the store; errors that wrap driver.ErrNoPool, or driver.ErrWrongAnswer for an
// invalid answer.
func Load(ctx context.Context, s driver.Store, pool string) ([]driver.Document, []driver.RosterRow, error) {
	docs, roster, err := s.Load(ctx, pool)
	if err == nil {
		err = driver.CheckLoaded(docs, roster)
	}
	if err != nil {
		return nil, nil, err
	}
	return docs, roster, nil
}

// A Recorded is the record that a change starts from.
type Recorded[T any] struct {
	// Value is zero if there is no document, or if Err says why it cannot be read.
	Value T
	Err   error
	// Next is the version of the change.
	Next driver.Version
	// Roster lists the live processors.
	Roster []driver.RosterRow
}

// Change changes the document of a pool. change returns the new value, or save false to leave the document as it is. It is called again if
// somebody else was first. version is the version of the change; 0 if there was none. ctx bounds the call.
//
// Errors: those of Load, of change and of Store.Save; *driver.ConflictError when others keep
// changing the document.
func (d *Doc[T]) Change(
	ctx context.Context, s driver.Store, pool string, change func(r Recorded[T]) (value T, save bool, err error),
) (version driver.Version, err error) {
	err = Retry(func() error {
		version = 0
		docs, roster, err := Load(ctx, s, pool)
		if err != nil {
			return err
		}
		doc := d.In(docs)
		r := Recorded[T]{Next: d.next(doc.Version, uint16(rand.Uint32())), Roster: roster}
		r.Value, r.Err = d.Read(doc)
		value, save, err := change(r)
		if err != nil || !save {
			return err
		}
		body, err := d.Body(value)
		if err != nil {
			return err
		}
		if _, err = s.Save(ctx, pool, driver.DocumentReport{Name: d.Name, Version: r.Next, Base: doc.Version, Body: body}); err != nil {
			return err
		}
		version = r.Next
		return nil
	})
	return version, err
}
