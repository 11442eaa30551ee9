package protocol

import (
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A spentReader takes the spending set by operators (the document "spent"). It is a part of tagging.
type spentReader struct {
	version driver.Version // of the document that was read last
	begun   bool           // an answer was read, with or without a document
	// news are the changes not logged yet: those made while this processor was in the pool.
	news spentList
}

// take takes the document, before the answer that came with it: the spending in the answer is as new as the change, or newer. Each change
// counts once, because more is spent after it. An unreadable document is as none.
func (r *spentReader) take(held pooldoc.Held, b *tagBook) {
	begun, before := r.begun, r.version
	if r.begun = true; held.Version <= before {
		return
	}
	r.version = held.Version
	list, err := spentDoc.Read(held.Document)
	if err != nil {
		return
	}
	changes := list.since(before)
	for _, c := range changes {
		b.lowerSeen(&c.SpentChange)
	}
	if begun {
		r.news = append(r.news, changes...)
	}
}

// lowerSeen lowers the known spending of a window to the number that was set. Raising it is the store's business.
func (b *tagBook) lowerSeen(c *SpentChange) {
	b.detach()
	for i := range b.accounts {
		a := &b.accounts[i]
		if a.Tag != c.Tag {
			continue
		}
		for k := range a.budgets {
			if w := &a.budgets[k]; w.start == c.Start.UnixMicro() {
				w.seen, b.news = min(w.seen, c.Tokens), true
			}
		}
	}
}
