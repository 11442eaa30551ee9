package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// documents reports on some documents: mostly what is on record, and changes of it.
func (m *model) documents() (reports []driver.DocumentReport) {
	for _, i := range m.rnd.Perm(9)[:pick(m, 0, 0, 1, 1, 2, 8)] {
		reports = append(reports, m.document(fmt.Sprint("d_", i)))
	}
	return reports
}

// document is a report on one document.
func (m *model) document(name string) driver.DocumentReport {
	d := driver.DocumentReport{Name: name}
	i := slices.IndexFunc(m.record.Documents, func(d driver.Document) bool { return d.Name == name })
	var recorded driver.Document
	if i >= 0 {
		recorded = m.record.Documents[i]
	}
	bodies := [][]byte{{0}, []byte("1 "), []byte("12 \x00\xff"), bytes.Repeat([]byte("b"), wire.MaxDocumentBytes), recorded.Body}
	switch m.rnd.IntN(10) {
	case 0: // knows nothing
	case 1: // knows an older or a newer one
		d.Version = max(recorded.Version, 4) - 4 + driver.Version(m.rnd.IntN(9))
	case 2, 3: // gives back
		d.Version = max(recorded.Version, 4) - 2 + driver.Version(m.rnd.IntN(5))
		d.Base, d.Body = d.Version, pick(m, bodies...)
	case 4, 5: // changes
		d.Base, d.Body = recorded.Version, pick(m, bodies...)
		d.Version = pick(m, driver.NextVersion(d.Base, uint16(m.rnd.Uint32())), d.Base+1, d.Base+1, max(d.Base, 1<<53)+1)
	case 6: // changes another version, or does again what was done
		d.Version, d.Body = recorded.Version+driver.Version(m.rnd.IntN(2)), pick(m, bodies...)
		d.Base = max(d.Version, 3) - 3
	default:
		d.Version = recorded.Version
	}
	d.Version = min(d.Version, 1<<63-1)
	d.Base = min(d.Base, d.Version)
	if len(d.Body) > 0 && d.Version == 0 {
		d.Version = 1
	}
	return d
}

// noteDocuments counts what became of the reports of a granted request.
func (m *model) noteDocuments(before *driver.Record, req *driver.Request) {
	version := func(r *driver.Record, name string) driver.Version {
		for _, d := range r.Documents {
			if d.Name == name {
				return d.Version
			}
		}
		return 0
	}
	for _, d := range req.Documents {
		switch old := version(before, d.Name); {
		case len(d.Body) == 0:
		case old == version(&m.record, d.Name):
			m.seen["not taken"]++
		case d.Base == d.Version:
			m.seen["given back"]++
		default:
			m.seen["changed"]++
		}
	}
	switch {
	case m.record.Epoch == before.Epoch:
	case m.record.Epoch == 0:
		m.seen["beginning forgotten"]++
	case m.record.Silence > 0:
		m.seen["began anew"]++
	}
}

// unknownFields are names that no field of a pool has.
var unknownFields = []string{"x", "x\x00", "\x00x"}

// damage spoils a document on record, and adds a field that nobody knows.
func (m *model) damage() {
	if len(m.record.Documents) == 0 {
		return
	}
	d := &m.record.Documents[m.rnd.IntN(len(m.record.Documents))]
	d.Version, d.Body = damagedVersion, []byte(damagedBody)
	require.NoError(m.t, m.client.HSet(m.t.Context(), m.key, documentField+d.Name, pick(m, unversioned...), pick(m, unknownFields...), "0 1 0").Err())
	m.seen["damaged"]++
}

// saving is a document that an operator saves.
func (m *model) saving() driver.DocumentReport {
	for {
		d := m.document(fmt.Sprint("d_", m.rnd.IntN(9)))
		if d.ValidateSave(m.pool) == nil {
			return d
		}
	}
}

func (m *model) save(d driver.DocumentReport) {
	want, _, wantErr := m.record.Save(&d, driver.At{})
	reply, err := scriptedSave.Run(m.t.Context(), m.client, []string{m.key}, saveArgs(&d)...).Result()
	require.NoError(m.t, err)
	got, err := parseSave(reply, &d)
	require.Equal(m.t, want, got, "%+v", d)
	require.Equal(m.t, wantErr, err, "%+v", d)
	if m.record.Revision > 0 {
		require.Equal(m.t, sorted(m.record), m.stored(), "on record after %+v", d)
		docs, roster, err := m.store.Load(m.t.Context(), m.pool)
		require.NoError(m.t, err)
		wantDocs, wantRoster, _ := m.record.Load()
		require.Equal(m.t, wantDocs, docs)
		require.Equal(m.t, wantRoster, roster)
	}
	var conflict *driver.ConflictError
	var bad *driver.RequestError
	switch {
	case err == nil:
		m.seen["saved"]++
	case errors.As(err, &conflict):
		m.seen["conflict"]++
	case errors.As(err, &bad):
		m.seen["too many"]++
	case errors.Is(err, driver.ErrNoPool):
		m.seen["no pool"]++
	}
}
