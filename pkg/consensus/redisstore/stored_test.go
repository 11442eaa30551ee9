package redisstore

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// stored reads the record back from the server.
func (m *model) stored() driver.Record {
	fields := m.client.HGetAll(m.t.Context(), m.key).Val()
	var r driver.Record
	var rows, claims, oldest, documents int64 // what meta says of all
	sums := map[uint64][2]int64{}
	for name, value := range fields {
		if name == permitsField {
			continue
		}
		if name == tagBucketsField {
			require.Equal(m.t, "1", value)
			tagBuckets, err := parseHash(m.client.HGetAll(m.t.Context(), tagBucketsKey(m.key)).Val(), driver.CheckTagBuckets)
			require.NoError(m.t, err)
			r.TagBuckets = tagBuckets
			continue
		}
		if name == namesField {
			r.Names = m.storedNames(value)
			continue
		}
		if key, ok := strings.CutPrefix(name, tagSumField); ok {
			n := numberReader{packed: value}
			sums[binary.BigEndian.Uint64([]byte(key))] = [2]int64{n.number(), n.number()}
			require.False(m.t, n.faulty)
			continue
		}
		part := strings.Split(value, " ")
		if name == metaField {
			require.Len(m.t, part, 15)
			r.Store, r.Revision = part[1], m.uint(part[2])
			r.Clock, r.Wall = m.int(part[3]), m.int(part[4])
			r.FrozenUntil, r.FrozenSince = m.int(part[5]), m.int(part[6])
			if part[7] != noCause {
				r.FrozenBy = driver.FreezeCause(part[7])
			}
			r.Lease = time.Duration(m.int(part[8])) * time.Millisecond
			rows, claims, oldest = m.int(part[9]), m.int(part[10]), m.int(part[11])
			r.Epoch, r.Silence, documents = m.int(part[12]), time.Duration(m.int(part[13]))*time.Microsecond, m.int(part[14])
			continue
		}
		if document, ok := strings.CutPrefix(name, documentField); ok {
			version, body, _ := strings.Cut(value, " ")
			if slices.Contains(unversioned, value) {
				version, body = strconv.Itoa(damagedVersion), damagedBody
			}
			r.Documents = append(r.Documents, driver.Document{Name: document, Version: driver.Version(m.uint(version)), Body: []byte(body)})
			continue
		}
		if slices.Contains(unknownFields, name) {
			continue
		}
		r.Rows = append(r.Rows, m.storedRow(name, value))
	}
	require.Len(m.t, r.Rows, int(rows))
	require.Len(m.t, r.Documents, int(documents))
	require.Equal(m.t, sumsOf(r.Rows), sums, "what all rows hold of tags")
	require.Equal(m.t, int64(r.Claims()), claims)
	if packed, ok := fields[permitsField]; ok {
		m.storedPermits(packed, &r)
	}
	for _, row := range r.Rows {
		require.GreaterOrEqual(m.t, row.LastSeen, oldest)
	}
	return sorted(r)
}

// storedNames reads the tag buckets of names and the cells.
func (m *model) storedNames(value string) (n driver.Names) {
	tagBuckets, err := parseHash(m.client.HGetAll(m.t.Context(), namesKey(m.key)).Val(), driver.CheckNames)
	require.NoError(m.t, err)
	n.TagBuckets = tagBuckets
	if value == "1" {
		for name, value := range m.client.HGetAll(m.t.Context(), sketchKey(m.key)).Val() {
			r := numberReader{packed: value}
			n.Cells = append(n.Cells, driver.Cell{Index: int(binary.BigEndian.Uint16([]byte(name))), End: r.number(), Value: r.number()})
			require.False(m.t, r.faulty)
		}
	}
	return n
}

// storedPermits reads the packed field, which counts where meta says something else.
func (m *model) storedPermits(packed string, r *driver.Record) {
	n := make([]int64, permitsNumbers)
	for i := range n {
		n[i] = int64(permitsNumber(packed, i))
		require.Equal(m.t, permitsNumber(packed, i), float64(n[i]), "number %d", i) //nolint:testifylint // exactly
	}
	text := strings.Split(packed[8*permitsNumbers:], "\x00")
	require.Len(m.t, text, 3)
	r.Revision = uint64(n[0])*halfRevision + uint64(n[1])
	r.Clock, r.Wall, r.FrozenUntil, r.FrozenSince = n[2], n[3], n[4], n[5]
	r.Lease = time.Duration(n[6]) * time.Millisecond
	require.Len(m.t, r.Rows, int(n[7]))
	require.Equal(m.t, int64(r.Claims()), n[8])
	r.Permits = driver.Permits{
		Issuing: n[9] == 1, Spacing: time.Duration(n[10]), Held: n[11], Hold: n[12], Step: time.Duration(n[13]),
		Count: int(n[14]), Serial: uint64(n[15])*halfRevision + uint64(n[16]), Last: n[17]*1000 + n[18],
		SpacingUntil: n[19], StrictUntil: n[20], SharesUntil: n[21],
	}
	r.Store, r.FrozenBy = text[0], driver.FreezeNone
	if text[1] != noCause {
		r.FrozenBy = driver.FreezeCause(text[1])
	}
}

func (m *model) storedRow(name, value string) driver.Row {
	id, incarnation, _ := strings.Cut(name, "\x00")
	part := strings.SplitN(value, " ", 7)
	w := driver.Row{
		RowKey: driver.RowKey{ID: id, Incarnation: incarnation},
		State:  driver.RowState(m.int(part[0])), LastSeen: m.int(part[1]),
		Seq: m.uint(part[3]), Nonce: m.uint(part[4]),
	}
	parsed, err := parseRow("0" + value[1:])
	require.NoError(m.t, err)
	w.Holding = parsed.Holding
	require.Equal(m.t, int64(w.Claim), m.int(part[2]), "the claim")
	return w
}

func (m *model) int(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(m.t, err)
	return n
}

func (m *model) uint(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(m.t, err)
	return n
}

// sorted returns the record with rows in order and no empty slices.
func sorted(r driver.Record) driver.Record {
	r.Rows, r.Documents = append([]driver.Row(nil), r.Rows...), append([]driver.Document(nil), r.Documents...)
	r.TagBuckets = append([]driver.TagBucket(nil), r.TagBuckets...)
	r.Names.TagBuckets = append([]driver.TagBucket(nil), r.Names.TagBuckets...)
	var cells []driver.Cell // those that count: a script lets others be
	for _, c := range r.Names.Cells {
		if budget := c.Index < wire.MaxCells/2; budget && c.End+10*60_000_000 > r.Wall || !budget && c.End > r.Clock {
			cells = append(cells, c)
		}
	}
	r.Names.Cells = cells
	slices.SortFunc(cells, func(a, b driver.Cell) int { return a.Index - b.Index })
	slices.SortFunc(r.Documents, func(a, b driver.Document) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Rows, func(a, b driver.Row) int {
		return strings.Compare(a.ID+"\x00"+a.Incarnation, b.ID+"\x00"+b.Incarnation)
	})
	return r
}
