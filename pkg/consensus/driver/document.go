package driver

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// A Document is data that every processor of a pool must know: an override of the limit, where its ramp stands. The store keeps it and only
// interprets its version; its readers interpret the body.
type Document struct {
	// Name has 1 to 32 bytes of a-z, 0-9 and _.
	Name    string
	Version Version
	// Body has 1 to 4,096 bytes of any kind.
	Body []byte
}

// A Version tells one state of a document from every other, and which is newer: 1 to 1<<63 - 1; 0 means no document. [NextVersion] and
// [LaterVersion] make them.
type Version uint64

const (
	maxDocumentName = 32
	versionRandom   = 16 // bits
)

// NextVersion returns the version of a change to a document of version v. It counts the changes in the upper 48 bits. The lower 16 are
// random, drawn for each change, so that two changes that processors make apart differ.
func NextVersion(v Version, random uint16) Version {
	count := min(v>>versionRandom+1, wire.MaxVersion>>versionRandom)
	return count<<versionRandom | Version(random)
}

// LaterVersion returns the version of a change made at a time, perhaps without knowing the versions before: [NextVersion], but with a count
// of at least the seconds since 1970. So if the store has forgotten an earlier such change, and a processor gives that back, the later one
// stays. Clocks that differ matter only there.
func LaterVersion(v Version, at time.Time, random uint16) Version {
	seconds := min(Version(max(at.Unix(), 1)), wire.MaxVersion>>versionRandom)
	return NextVersion(max(v, (seconds-1)<<versionRandom), random)
}

// A DocumentReport is a request's report on one document.
//
//   - Without a body: the sender has loaded Version; 0 is none. Base is 0 or the same.
//   - With a body and Base below Version: a change. The sender has loaded Base, and proposes the body as the next version. It is taken if
//     Base is on record.
//   - With a body and Base = Version: the sender gives back the version that it has loaded. It is taken if the store has an older version,
//     or none: then it has forgotten this one. A body that may replace only the older version seen is given back as a change from that; the
//     document "pause" is.
//
// So a body is taken when Version is above the version on record, and Base is the version on record or Version itself. Of two changes of
// the same version the first one is taken. A change cannot create a document beyond 8.
type DocumentReport struct {
	Name          string
	Version, Base Version
	Body          []byte
}

// ErrNoPool is wrapped by the error for a pool that has no record.
var ErrNoPool = errors.New("consensus: the pool has no record")

// ErrNoBucket is ErrNoPool of a store that has not even the bucket for pools. The first sync makes it.
var ErrNoBucket = fmt.Errorf("%w, nor has the store a bucket for it", ErrNoPool)

// ConflictError is the error for a document that was not saved because the version on record is not the one that the change was made from.
type ConflictError struct {
	Name string
	// Base is the version that was expected and Current the one on record; 0: none.
	Base, Current Version
}

// Error returns the message.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("consensus: the document %q has version %d, expected: %d", e.Name, uint64(e.Current), uint64(e.Base))
}

// takes tells whether a report's body replaces the version on record.
func (d *DocumentReport) takes(current Version) bool {
	return len(d.Body) > 0 && d.Version > current && (d.Base == current || d.Base == d.Version)
}

// matches tells whether the report says exactly what is on record.
func (d *DocumentReport) matches(doc *Document) bool {
	return d.Version == doc.Version && (len(d.Body) == 0 || bytes.Equal(d.Body, doc.Body))
}

// findDocument returns the index of the document of that name, or where it belongs.
func (r *Record) findDocument(name string) (int, bool) {
	return slices.BinarySearchFunc(r.Documents, name, func(d Document, name string) int { return cmp.Compare(d.Name, name) })
}

// document returns the document on record under a name, with version 0 if there is none.
func (r *Record) document(name string) Document {
	if i, ok := r.findDocument(name); ok {
		return r.Documents[i]
	}
	return Document{Name: name}
}

// putDocument replaces a document, or adds it if there is room for one more.
func (r *Record) putDocument(d *DocumentReport) bool {
	doc := Document{d.Name, d.Version, bytes.Clone(d.Body)}
	i, ok := r.findDocument(d.Name)
	switch {
	case ok:
		r.Documents[i] = doc
	case len(r.Documents) == wire.MaxDocuments:
		return false
	default:
		r.Documents = slices.Insert(r.Documents, i, doc)
	}
	return true
}

// takeDocuments takes the reports that are newer than the record.
func (r *Record) takeDocuments(reports []DocumentReport) {
	for i := range reports {
		if d := &reports[i]; d.takes(r.document(d.Name).Version) {
			r.putDocument(d)
		}
	}
}

// unreported lists the documents on record, by rising name, except those that match a report exactly. A reported document that is not on
// record is listed with version 0. The list shares no memory with the record.
func (r *Record) unreported(reports []DocumentReport) (docs []Document) {
	for i := range r.Documents {
		d := &r.Documents[i]
		said := func(rep DocumentReport) bool { return rep.Name == d.Name && rep.matches(d) }
		if !slices.ContainsFunc(reports, said) {
			docs = append(docs, Document{d.Name, d.Version, bytes.Clone(d.Body)})
		}
	}
	for i := range reports {
		if _, ok := r.findDocument(reports[i].Name); !ok && reports[i].Version > 0 {
			docs = append(docs, Document{Name: reports[i].Name})
		}
	}
	slices.SortFunc(docs, func(a, b Document) int { return cmp.Compare(a.Name, b.Name) })
	return docs
}

// Save changes one document, as [Store.Save] does, and returns the version on record after that. Nothing else changes but the revision: it is
// no step in the life of the pool. For a Deferred store it replaces the write of the last step, whose time is lost with it, and so stamps
// the rest of that step. The report must be valid. The error is [ErrNoPool], a *ConflictError, or a *RequestError if the pool has too many
// documents.
func (r *Record) Save(d *DocumentReport, at At) (current Version, changed bool, err error) {
	if r.Revision == 0 {
		return 0, false, ErrNoPool
	}
	doc := r.document(d.Name)
	switch {
	case doc.Version == d.Version && bytes.Equal(doc.Body, d.Body):
		return doc.Version, false, nil // saved before
	case !d.takes(doc.Version):
		return doc.Version, false, &ConflictError{Name: d.Name, Base: d.Base, Current: doc.Version}
	}
	if !r.putDocument(d) {
		return 0, false, tooManyDocuments(d.Name)
	}
	if at.Deferred {
		st := r.begin(0, at)
		st.stampLast()
		r.Clock, r.Wall = st.clock, at.Now
	}
	r.Revision++
	return d.Version, true, nil
}

// Load returns the documents by rising name and the roster, as the last step left it; see [Store.Load]. The error is [ErrNoPool].
func (r *Record) Load() ([]Document, []RosterRow, error) {
	if r.Revision == 0 {
		return nil, nil, ErrNoPool
	}
	roster := r.Grant(r.Clock).Roster
	i := 0
	for k := range r.Rows {
		if r.Rows[k].State == RowLive {
			roster[i].TagClaims = slices.Clone(r.Rows[k].TagClaims)
			i++
		}
	}
	return r.unreported(nil), roster, nil
}

func tooManyDocuments(name string) *RequestError {
	return &RequestError{"Name", fmt.Sprintf("%q", name), fmt.Sprint("one of the ", wire.MaxDocuments, " documents that the pool has already")}
}

// ValidateSave returns a *RequestError for the first field with which no store saves a document, or nil. Every Store calls it first in
// Save.
func (d *DocumentReport) ValidateSave(pool string) error {
	if err := ValidatePool(pool); err != nil {
		return err
	}
	if len(d.Body) == 0 {
		return &RequestError{"Body", "empty", fmt.Sprint("1 to ", wire.MaxDocumentBytes, " bytes")}
	}
	if err := d.validate(); err != nil {
		return err
	}
	if d.Base >= d.Version {
		return &RequestError{"Base", fmt.Sprint(uint64(d.Base)), "below Version"}
	}
	return nil
}

// ValidatePool returns a *RequestError for a name that no pool can have, or nil.
// Every Store calls it first in Load.
func ValidatePool(pool string) error {
	if !wire.IsName(pool) {
		return badName("Pool", pool)
	}
	return nil
}

// validateDocuments checks the reports of a request.
func validateDocuments(reports []DocumentReport) error {
	if len(reports) > wire.MaxDocuments {
		return &RequestError{"Documents", fmt.Sprint(len(reports), " documents"), fmt.Sprint("at most ", wire.MaxDocuments)}
	}
	for i := range reports {
		d := &reports[i]
		if err := d.validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(reports[:i], func(o DocumentReport) bool { return o.Name == d.Name }) {
			return &RequestError{"Name", fmt.Sprintf("%q twice", d.Name), "each document once"}
		}
	}
	return nil
}

func (d *DocumentReport) validate() error {
	if !isDocumentName(d.Name) {
		return &RequestError{"Name", fmt.Sprintf("%.40q", d.Name), fmt.Sprint("1 to ", maxDocumentName, " bytes of a-z, 0-9 and _")}
	}
	if len(d.Body) > wire.MaxDocumentBytes {
		return &RequestError{"Body", fmt.Sprint(len(d.Body), " bytes"), fmt.Sprint("at most ", wire.MaxDocumentBytes)}
	}
	lowest := Version(0)
	if len(d.Body) > 0 {
		lowest = 1
	}
	if d.Version < lowest || d.Version > wire.MaxVersion {
		return &RequestError{"Version", fmt.Sprint(uint64(d.Version)), fmt.Sprint(uint64(lowest), " to ", int64(wire.MaxVersion))}
	}
	if d.Base > d.Version || len(d.Body) == 0 && d.Base > 0 && d.Base < d.Version {
		return &RequestError{"Base", fmt.Sprint(uint64(d.Base)), "0 to Version; without a body 0 or Version"}
	}
	return nil
}

// ValidateNote returns a *RequestError for a note that no store accepts, or nil.
func ValidateNote(note string) error {
	if len(note) > wire.MaxNoteBytes || strings.ContainsRune(note, 0) {
		return &RequestError{"Note", fmt.Sprintf("%.40q", note), fmt.Sprint("at most ", wire.MaxNoteBytes, " bytes without NUL")}
	}
	return nil
}

func isDocumentName(name string) bool {
	other := func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' }
	return name != "" && len(name) <= maxDocumentName && !strings.ContainsFunc(name, other)
}

// checkDocuments returns an error for the first document of an answer or a record that no store keeps. An answer may also report that there
// is none.
func checkDocuments(docs []Document, mayLack bool) error {
	if len(docs) > wire.MaxDocuments && !mayLack || len(docs) > 2*wire.MaxDocuments {
		return outside("the number of documents", fmt.Sprint(len(docs)), fmt.Sprint("at most ", wire.MaxDocuments))
	}
	for i := range docs {
		d := &docs[i]
		if !isDocumentName(d.Name) {
			return outside("the name of a document", fmt.Sprintf("%.40q", d.Name), fmt.Sprint("1 to ", maxDocumentName, " bytes of a-z, 0-9 and _"))
		}
		if i > 0 && docs[i-1].Name >= d.Name {
			return fmt.Errorf("document %q: not above the document before it", d.Name)
		}
		if mayLack && d.Version == 0 && len(d.Body) == 0 {
			continue
		}
		if d.Version == 0 || d.Version > wire.MaxVersion {
			return outside("the version of document "+d.Name, fmt.Sprint(uint64(d.Version)), fmt.Sprint("1 to ", int64(wire.MaxVersion)))
		}
		if len(d.Body) == 0 || len(d.Body) > wire.MaxDocumentBytes {
			return outside("the body of document "+d.Name, fmt.Sprint(len(d.Body), " bytes"), fmt.Sprint("1 to ", wire.MaxDocumentBytes))
		}
	}
	return nil
}
