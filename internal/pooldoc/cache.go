package pooldoc

import (
	"cmp"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Cache holds the documents of a pool as a processor has loaded them, including unreadable ones. The zero Cache is empty. A copy is
// independent. It is not safe for concurrent use.
type Cache struct {
	held []Held // by rising name
}

// Held is one document as it was last loaded.
type Held struct {
	driver.Document

	// Lost means that the store no longer has it.
	Lost bool
	// Seen is the older version in the last answer, if the document is Lost; Version 0: none.
	Seen driver.Document
}

// Find returns the document held under a name, with version 0 if there is none.
func (c *Cache) Find(name string) Held {
	for i := range c.held {
		if c.held[i].Name == name {
			return c.held[i]
		}
	}
	return Held{Document: driver.Document{Name: name}}
}

// All returns the documents as they were last loaded, by rising name.
func (c *Cache) All() []driver.Document {
	docs := make([]driver.Document, len(c.held))
	for i := range c.held {
		docs[i] = c.held[i].Document
	}
	return docs
}

// Put replaces the document held under its name by one on record.
func (c *Cache) Put(d driver.Document) { c.put(Held{Document: d}) }

func (c *Cache) put(h Held) {
	i, ok := slices.BinarySearchFunc(c.held, h.Name, func(h Held, name string) int { return cmp.Compare(h.Name, name) })
	if !ok && len(c.held) == wire.MaxDocuments {
		return // the pool has at most as many, unless the store went back to others
	}
	c.held = slices.Clone(c.held) // a copy of the cache keeps its own
	if ok {
		c.held[i] = h
	} else {
		c.held = slices.Insert(c.held, i, h)
	}
}

// Take updates the cache from the answer to a request; sent are the reports of the request. changed names the documents that differ from
// those held before.
func (c *Cache) Take(sent []driver.DocumentReport, docs []driver.Document) (changed []string) {
	for i := range sent {
		// A proposal that is not in the answer is on record as it was sent.
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

// Lost reports whether the store has lost anything.
func (c *Cache) Lost() bool {
	return slices.ContainsFunc(c.held, func(h Held) bool { return h.Lost })
}

// Reports returns a request's reports of the documents: the versions held, and the bodies of documents that the store has lost.
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
	case len(list) < wire.MaxDocuments:
		list = append(list, d)
	}
	return list
}
