package storetest

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// exchange syncs with reports on documents, and nothing in use.
func (a *proc) exchange(reports ...driver.DocumentReport) driver.Answer {
	a.pool.Helper()
	return a.sync(one(0, 0), reports...)
}

// loaded reports that a version is loaded.
func loaded(name string, v driver.Version) driver.DocumentReport {
	return driver.DocumentReport{Name: name, Version: v}
}

// change proposes a body.
func change(name string, base, v driver.Version, body string) driver.DocumentReport {
	return driver.DocumentReport{Name: name, Version: v, Base: base, Body: []byte(body)}
}

// giveBack gives back a loaded document.
func giveBack(name string, v driver.Version, body string) driver.DocumentReport {
	return change(name, v, v, body)
}

func doc(name string, v driver.Version, body string) driver.Document {
	return driver.Document{Name: name, Version: v, Body: []byte(body)}
}

// requireDocuments requires that the documents are these, by rising name.
func (p *pool) requireDocuments(got []driver.Document, want ...driver.Document) {
	p.Helper()
	if !sameDocuments(got, want) {
		require.Fail(p, "other documents", "got  %s\nwant %s", outline(got), outline(want))
	}
}

func outline(docs []driver.Document) string {
	var b strings.Builder
	for _, d := range docs {
		fmt.Fprintf(&b, "%q %d %.60q; ", d.Name, uint64(d.Version), d.Body)
	}
	return b.String()
}

func sameDocuments(a, b []driver.Document) bool {
	for i := range a {
		if i >= len(b) || a[i].Name != b[i].Name || a[i].Version != b[i].Version || !bytes.Equal(a[i].Body, b[i].Body) {
			return false
		}
	}
	return len(a) == len(b)
}

// documentCases are about documents inside a sync.
var documentCases = []testCase{
	{name: "a document is told to whoever has it not", run: reportedToAll},
	{name: "of two changes of one version the first is taken", run: firstChange},
	{name: "what the store has not is given back", run: givenBack},
	{name: "an older document is replaced by the newer one of a holder", needs: canSnapshot, run: rolledBackDocument},
	{name: "a repeat changes no document, and tells what is there now", run: repeatedDocument},
	{name: "a refused request takes and tells no document", run: refusedDocument},
	{name: "documents outlive the processors", run: documentsOutlive},
	{name: "versions are kept exactly", run: exactVersions},
	{name: "bodies are kept exactly, up to the largest", run: exactBodies},
	{name: "a pool has so many documents and no more", run: manyDocuments},
	{name: "a note is shown in the roster, exactly", run: notes},
}

func reportedToAll(p *pool) {
	a, b := p.open()
	p.requireDocuments(a.exchange(loaded("limit", 0)).Documents)
	p.requireDocuments(a.exchange(change("limit", 0, 70_000, "ten"), change("ramp", 0, 70_001, "up")).Documents)

	p.requireDocuments(b.exchange().Documents, doc("limit", 70_000, "ten"), doc("ramp", 70_001, "up"))
	p.requireDocuments(b.exchange(loaded("limit", 70_000)).Documents, doc("ramp", 70_001, "up"))
	p.requireDocuments(b.exchange(loaded("ramp", 70_001), loaded("limit", 70_000)).Documents)
	p.requireDocuments(b.exchange(change("limit", 70_000, 140_000, "twenty"), loaded("ramp", 70_001)).Documents)
	p.requireDocuments(a.exchange(loaded("limit", 70_000), loaded("ramp", 70_001)).Documents, doc("limit", 140_000, "twenty"))
	// A version newer than the one on record is news, too.
	p.requireDocuments(a.exchange(loaded("limit", 200_000), loaded("ramp", 70_001)).Documents, doc("limit", 140_000, "twenty"))
	p.requireDocuments(a.exchange(loaded("limit", 140_000), loaded("ramp", 70_001)).Documents)
}

func firstChange(p *pool) {
	a, b := p.open()
	a.exchange(change("limit", 0, 5, "old"))
	b.exchange(loaded("limit", 5))
	p.requireDocuments(a.exchange(change("limit", 5, 8, "mine")).Documents)
	// Neither a higher nor a lower version changes that, nor the same one.
	for _, v := range []driver.Version{9, 7, 8} {
		p.requireDocuments(b.exchange(change("limit", 5, v, "theirs")).Documents, doc("limit", 8, "mine"))
	}
	p.requireDocuments(b.exchange(change("limit", 9, 10, "of what nobody has")).Documents, doc("limit", 8, "mine"))
	p.requireDocuments(b.exchange(change("limit", 8, 9, "theirs")).Documents)
	p.requireDocuments(a.exchange(loaded("limit", 8)).Documents, doc("limit", 9, "theirs"))
	// A document that is not there has version 0.
	p.requireDocuments(a.exchange(change("ramp", 5, 6, "up"), loaded("limit", 9)).Documents, doc("ramp", 0, ""))
}

func givenBack(p *pool) {
	a, b := p.open()
	p.requireDocuments(a.exchange(loaded("limit", 9)).Documents, doc("limit", 0, ""))
	p.requireDocuments(a.exchange(giveBack("limit", 9, "kept")).Documents)
	p.requireDocuments(b.exchange().Documents, doc("limit", 9, "kept"))
	p.requireDocuments(b.exchange(giveBack("limit", 8, "older")).Documents, doc("limit", 9, "kept"))
	p.requireDocuments(b.exchange(giveBack("limit", 9, "forged")).Documents, doc("limit", 9, "kept"))
	p.requireDocuments(b.exchange(giveBack("limit", 11, "newer")).Documents)
	p.requireDocuments(a.exchange(loaded("limit", 9)).Documents, doc("limit", 11, "newer"))
}

func rolledBackDocument(p *pool) {
	a, b := p.open()
	a.exchange(change("limit", 0, 5, "old"), change("ramp", 0, 5, "up"))
	restore := p.Snapshot(p, p.name)
	p.requireDocuments(a.exchange(change("limit", 5, 6, "new"), loaded("ramp", 5)).Documents)
	restore()
	p.requireDocuments(b.exchange().Documents, doc("limit", 5, "old"), doc("ramp", 5, "up"))
	p.requireDocuments(a.exchange(loaded("limit", 6), loaded("ramp", 5)).Documents, doc("limit", 5, "old"))
	p.requireDocuments(a.exchange(giveBack("limit", 6, "new"), loaded("ramp", 5)).Documents)
	p.requireDocuments(b.exchange(loaded("limit", 5), loaded("ramp", 5)).Documents, doc("limit", 6, "new"))
}

func repeatedDocument(p *pool) {
	a, b := p.open()
	a.exchange(change("limit", 0, 5, "old"))
	b.exchange(loaded("limit", 5))
	req := a.request(one(0, 0), change("limit", 5, 6, "mine"))
	ans := a.send(req)
	p.requireDocuments(ans.Documents)
	p.requireDocuments(a.send(req).Documents)
	p.requireDocuments(b.exchange(change("limit", 6, 7, "theirs")).Documents)
	again := a.send(req)
	p.requireDocuments(again.Documents, doc("limit", 7, "theirs"))
	a.take(ans)
	p.requireDocuments(a.exchange(loaded("limit", 6)).Documents, doc("limit", 7, "theirs"))

	// A change not taken at first is not taken later.
	req = a.request(one(0, 0), change("limit", 8, 9, "of what is to come"))
	p.requireDocuments(a.send(req).Documents, doc("limit", 7, "theirs"))
	b.exchange(change("limit", 7, 8, "theirs"))
	p.requireDocuments(a.send(req).Documents, doc("limit", 8, "theirs"))
}

func refusedDocument(p *pool) {
	a, b := p.open()
	b.exchange(change("limit", 0, 5, "there"))
	refuse := func(status driver.Status, by *proc) {
		p.Helper()
		req := by.request(one(0, 0), change("limit", 5, 6, "no"), giveBack("ramp", 9, "no"), giveBack("other", 1, "no"))
		require.Equal(p, status, by.send(req).Status) // which requires that nothing else is set
	}
	a.exchange()
	old := a.clone()
	a.exchange()
	a.exchange()
	refuse(driver.Late, old)
	a.leave()
	refuse(driver.Removed, a)
	c := a.reborn()
	c.exchange()
	refuse(driver.Replaced, a)
	clone := c.clone()
	c.exchange()
	refuse(driver.Cloned, clone)
	p.requireDocuments(p.proc("another").exchange().Documents, doc("limit", 5, "there")) // b may be removed by now
}

func documentsOutlive(p *pool) {
	a, b := p.open()
	a.exchange(change("limit", 0, 5, "kept"))
	a.leave()
	p.requireDocuments(b.exchange().Documents, doc("limit", 5, "kept"))
	c := p.proc("c")
	c.sync(one(0, 0))
	p.eventually("the silent one is removed", func() bool { return c.sync(one(0, 0)).Live == 1 })
	p.requireDocuments(c.exchange().Documents, doc("limit", 5, "kept"))
}

func exactVersions(p *pool) {
	a, b := p.open()
	last := driver.Version(0)
	for _, v := range []driver.Version{
		1, 9, 10, 1<<53 - 1, 1 << 53, 1<<53 + 1, 9_999_999_999_999_999, 10_000_000_000_000_000, 1<<62 + 1, math.MaxInt64 - 1, math.MaxInt64,
	} {
		body := fmt.Sprint("version ", v)
		p.requireDocuments(a.exchange(change("limit", last, v, body)).Documents)
		p.requireDocuments(b.exchange(loaded("limit", last)).Documents, doc("limit", v, body))
		p.requireDocuments(b.exchange(loaded("limit", v)).Documents)
		p.requireDocuments(b.exchange(giveBack("limit", v, body)).Documents)
		if v > 1 {
			p.requireDocuments(b.exchange(giveBack("limit", v-1, "older")).Documents, doc("limit", v, body))
		}
		last = v
	}
}

func exactBodies(p *pool) {
	a, b := p.open()
	var all []byte
	for i := range wire.MaxDocumentBytes {
		all = append(all, byte(i*7))
	}
	var reports []driver.DocumentReport
	bodies := []string{string(all), "\x00", " ", "12 ", "1 2 3 4 5 ", "\xff\xfe\r\n\x00\"%s%d", "null", strings.Repeat("\x00", wire.MaxDocumentBytes)}
	var want []driver.Document
	for i, body := range bodies {
		reports = append(reports, change(fmt.Sprint("d_", i), 0, driver.Version(i+1), body))
		want = append(want, doc(fmt.Sprint("d_", i), driver.Version(i+1), body))
	}
	p.requireDocuments(a.exchange(reports...).Documents)
	p.requireDocuments(b.exchange().Documents, want...)
	p.requireDocuments(b.exchange(reports...).Documents)
}

func manyDocuments(p *pool) {
	a, _ := p.open()
	// Such names sort between one another as bytes do, and the longest is kept whole.
	names := []string{"0", "9", "_", "a", "a0", "a_", "aa", strings.Repeat("z", 32)}
	require.Len(p, names, wire.MaxDocuments)
	var want []driver.Document
	var known []driver.DocumentReport
	for i := range names {
		name := names[(i*5+2)%len(names)]
		a.exchange(change(name, 0, 1, "x"))
	}
	for _, name := range names {
		want = append(want, doc(name, 1, "x"))
		known = append(known, loaded(name, 1))
	}
	p.requireDocuments(a.exchange().Documents, want...)
	p.requireDocuments(a.exchange(change("b", 0, 1, "one more")).Documents, insert(want, 7, doc("b", 0, ""))...)
	known[0] = change("0", 1, 2, "y")
	p.requireDocuments(a.exchange(known...).Documents)
	_, err := p.save(change("b", 0, 1, "one more"))
	requireRequestError(p, err, "Name", "a ninth document")
}

func insert(docs []driver.Document, i int, d driver.Document) []driver.Document {
	return append(append(append([]driver.Document(nil), docs[:i]...), d), docs[i:]...)
}

func notes(p *pool) {
	a, b := p.open()
	for _, note := range []string{"max 10", "", " ", "1 2 3 ", "\xff%s\r\n\"", strings.Repeat("n", wire.MaxNoteBytes)} {
		report := one(0, 0)
		report.Note = note
		require.Equal(p, note, a.sync(report).Roster[0].Note)
		ans := b.sync(one(0, 0))
		require.Equal(p, []driver.RosterRow{{ID: "a", PoolSize: 1, Note: note}, {ID: "b", PoolSize: 1}}, timeless(ans.Roster))
	}
}

// wipedDocuments is about a store that has lost everything, and a processor that joins before those that remember come back.
func wipedDocuments(p *pool) {
	a, _ := p.open()
	a.exchange(change("limit", 0, 900, "of old"))
	p.Wipe(p)
	_, _, err := p.load()
	require.ErrorIs(p, err, driver.ErrNoPool)
	b := p.proc("b")
	p.requireDocuments(b.exchange(change("limit", 0, 3, "of a newcomer")).Documents)
	ans := a.exchange(loaded("limit", 900))
	p.requireDocuments(ans.Documents, doc("limit", 3, "of a newcomer"))
	require.Zero(p, ans.Epoch, "the pool is older than the record")
	p.requireDocuments(a.exchange(giveBack("limit", 900, "of old")).Documents)
	ans = b.exchange(loaded("limit", 3))
	p.requireDocuments(ans.Documents, doc("limit", 900, "of old"))
	require.Zero(p, ans.Epoch)
}

func spacedByDocument(p *pool) {
	a := p.issues(100 * ms)
	inForce := func() time.Duration {
		res, _ := p.reserve(p.store, driver.Reserve{Count: 1, Spacing: ms, Ahead: 1000})
		return res.Spacing
	}
	names := func(by string, version driver.Version, spacing time.Duration) time.Duration {
		req := a.request(one(0, 0), loaded("other", 99), loaded("limit", version))
		req.Spacing, req.SpacingBy = spacing, by
		a.take(a.send(req))
		return inForce()
	}
	_, err := p.save(change("limit", 0, 5, "x"))
	require.NoError(p, err)
	require.Equal(p, 110*ms, names("", 5, 110*ms))
	require.Equal(p, 110*ms, names("", 5, 50*ms), "it is by no document")
	require.Equal(p, 110*ms, names("limit", 4, 50*ms), "there is a newer one")
	require.Equal(p, 50*ms, names("limit", 5, 50*ms))
	require.Equal(p, 120*ms, names("limit", 4, 120*ms), "a larger one counts whoever names it")
	require.Equal(p, 20*ms, names("limit", 6, 20*ms), "it is newer than what is on record")
}
