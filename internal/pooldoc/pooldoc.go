package pooldoc

import (
	"errors"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Doc is one document of a pool: its name, and the form of its values.
type Doc[T any] struct {
	Name string
	// Body writes a value. It fails for one that no document can hold.
	Body func(value T) ([]byte, error)
	// Parse reads what Body writes. It fails for a body of another release.
	Parse func(body []byte) (T, error)
	// Late means that the document may be changed without knowledge of its earlier value. A change then outlives all earlier ones that the
	// store has lost and a processor gives back; see driver.LaterVersion.
	Late bool
	// Merges means that a restored document includes the one that was seen in its place. It replaces only that one.
	Merges bool
}

// Read returns the value of a document; the zero value if there is none. An error of Parse wraps ErrUnreadable.
func (d *Doc[T]) Read(doc driver.Document) (value T, err error) {
	if doc.Version == 0 {
		return value, nil
	}
	if value, err = d.Parse(doc.Body); err != nil {
		err = &unreadable{err}
	}
	return value, err
}

// ErrUnreadable is wrapped by the error of a document that this release cannot read.
var ErrUnreadable = errors.New("pooldoc: a document that this release cannot read")

// An unreadable is the error of a document, with the text of its cause.
type unreadable struct{ error }

func (e *unreadable) Unwrap() []error { return []error{e.error, ErrUnreadable} }

// In returns this document among those of a record, with version 0 if there is none.
func (d *Doc[T]) In(docs []driver.Document) driver.Document {
	for _, doc := range docs {
		if doc.Name == d.Name {
			return doc
		}
	}
	return driver.Document{Name: d.Name}
}

// next returns the version of a change to another version. random is drawn for it.
func (d *Doc[T]) next(v driver.Version, random uint16) driver.Version {
	if d.Late {
		// By the wall clock of the changing program. It decides nothing else.
		return driver.LaterVersion(v, time.Now(), random)
	}
	return driver.NextVersion(v, random)
}

// Propose returns the report in a request that proposes a value to replace the held one. random is drawn for this request. ok is false if
// no document can hold the value.
func (d *Doc[T]) Propose(held Held, value T, random uint16) (r driver.DocumentReport, ok bool) {
	body, err := d.Body(value)
	if err != nil {
		return r, false
	}
	r = driver.DocumentReport{Name: d.Name, Version: driver.NextVersion(held.Version, random), Base: held.Version, Body: body}
	if held.Lost {
		r.Base = r.Version // given back, one step on
		if d.Merges {
			r.Base = held.Seen.Version
		}
	}
	return r, true
}
