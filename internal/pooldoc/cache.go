package pooldoc

import (
	"cmp"
	"slices"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Cache holds the documents of a pool as a processor has loaded them, those that it
// cannot read as well. The zero Cache is empty. A copy of it is one of its own. It is not
// safe for concurrent use.
type Cache struct {
	held []Held // by rising name
}

// Held is one document as it was loaded last.
type Held struct {
	driver.Document

	// Lost says that the store has it no more.
	Lost bool
	// Seen is the older version that the last answer showed in its place if it is Lost;
	// Version 0: nothing.
	Seen driver.Document
}

// Find returns what is held under a name, with version 0 if nothing is.
func (c *Cache) Find(name string) Held {
	for i := range c.held {
		if c.held[i].Name == name {
			return c.held[i]
		}
	}
	return Held{Document: driver.Document{Name: name}}
}

// Put takes a document that is on record, in the place of what was held under its name.
func (c *Cache) Put(d driver.Document) { c.put(Held{Document: d}) }

func (c *Cache) put(h Held) {
	i, ok := slices.BinarySearchFunc(c.held, h.Name, func(h Held, name string) int { return cmp.Compare(h.Name, name) })
	if !ok && len(c.held) == driver.MaxDocuments {
		return // the pool has no more, unless the store went back to others
	}
	c.held = slices.Clone(c.held) // a copy of the cache keeps its own
	if ok {
		c.held[i] = h
	} else {
		c.held = slices.Insert(c.held, i, h)
	}
}

// Take takes what the answer to a request brings; sent are the reports of the request.
// changed names the documents that differ now from what was held before.
func (c *Cache) Take(sent []driver.DocumentReport, docs []driver.Document) (changed []string) {
	for i := range sent {
		// What was proposed and is not in the answer is on record as it was sent.
		d := &sent[i]
		if slices.ContainsFunc(docs, func(o driver.Document) bool { return o.Name == d.Name }) {
			continue
		}
		held := c.Find(d.Name)
		if len(d.Body) > 0 && d.Version >= held.Version {
			held.Document = driver.Document{Name: d.Name, Version: d.Version, Body: d.Body}
			changed = append(changed, d.Name)
		}
		if held.Version > 0 {
			c.Put(held.Document)
		}
	}
	for _, d := range docs {
		held := c.Find(d.Name)
		switch {
		case d.Version < held.Version:
			held.Lost, held.Seen = true, d
			c.put(held)
		case d.Version > 0:
			c.Put(d)
			changed = append(changed, d.Name)
		}
	}
	return changed
}

// Lost tells whether the store has lost anything.
func (c *Cache) Lost() bool {
	return slices.ContainsFunc(c.held, func(h Held) bool { return h.Lost })
}

// Reports returns what a request says of the documents: the versions held, and the bodies
// of what the store has lost.
func (c *Cache) Reports() []driver.DocumentReport {
	var out []driver.DocumentReport
	for _, h := range c.held {
		d := driver.DocumentReport{Name: h.Name, Version: h.Version}
		if h.Lost {
			d.Base, d.Body = h.Version, h.Body
		}
		out = append(out, d)
	}
	return out
}

// Report puts a proposal into a list of reports, in the place of another one of that
// document. A list that is full stays as it is.
func Report(list []driver.DocumentReport, d driver.DocumentReport) []driver.DocumentReport {
	i := slices.IndexFunc(list, func(o driver.DocumentReport) bool { return o.Name == d.Name })
	switch {
	case i >= 0:
		list[i] = d
	case len(list) < driver.MaxDocuments:
		list = append(list, d)
	}
	return list
}
