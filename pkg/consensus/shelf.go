package consensus

import "slices"

// A shelf holds the documents of the pool as a processor has loaded them, those that
// it cannot read as well: it gives back what the store loses.
type shelf struct {
	books []book // by rising name
}

// A book is one document, and whether the store has lost it.
type book struct {
	Document
	lost bool
	// instead is what the last answer showed in its place, of an older version, if the store has lost it; Version 0: nothing.
	instead Document
}

// find returns what is held under a name, with version 0 if nothing is.
func (s *shelf) find(name string) book {
	for i := range s.books {
		if s.books[i].Name == name {
			return s.books[i]
		}
	}
	return book{Document: Document{Name: name}}
}

// put replaces what is held under the document's name.
func (s *shelf) put(b book) {
	for i := range s.books {
		if s.books[i].Name == b.Name {
			s.books = slices.Clone(s.books) // a copy of the processor has the same
			s.books[i] = b
			return
		}
	}
	if len(s.books) == MaxDocuments {
		return // the pool has no more, unless the store went back to others
	}
	s.books = append(slices.Clip(s.books), b)
	slices.SortFunc(s.books, func(a, b book) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// take puts what an answer to a request brings on the shelf. changed names the documents
// that differ now from what was held before.
func (s *shelf) take(sent []DocumentReport, docs []Document) (changed []string) {
	for i := range sent {
		// What was proposed and is not in the answer is on record as it was sent.
		d := &sent[i]
		if slices.ContainsFunc(docs, func(o Document) bool { return o.Name == d.Name }) {
			continue
		}
		held := s.find(d.Name)
		if len(d.Body) > 0 && d.Version >= held.Version {
			held.Document = Document{Name: d.Name, Version: d.Version, Body: d.Body}
			changed = append(changed, d.Name)
		}
		held.lost, held.instead = false, Document{}
		if held.Version > 0 {
			s.put(held)
		}
	}
	for _, d := range docs {
		held := s.find(d.Name)
		switch {
		case d.Version < held.Version:
			held.lost, held.instead = true, d
			s.put(held)
		case d.Version > 0:
			s.put(book{Document: d})
			changed = append(changed, d.Name)
		}
	}
	return changed
}

// lost tells whether the store has lost anything.
func (s *shelf) lost() bool {
	return slices.ContainsFunc(s.books, func(b book) bool { return b.lost })
}

// reports returns what a request says of the documents: the versions held, and the
// bodies of what the store has lost.
func (s *shelf) reports() []DocumentReport {
	var out []DocumentReport
	for _, b := range s.books {
		d := DocumentReport{Name: b.Name, Version: b.Version}
		if b.lost && !skip(ruleReturn) {
			d.Base, d.Body = b.Version, b.Body
		}
		out = append(out, d)
	}
	return out
}
