package driver

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

func TestNextVersion(t *testing.T) {
	for _, c := range []struct {
		v      Version
		random uint16
		want   Version
	}{
		{0, 0, 1 << 16},
		{0, 0xffff, 1<<16 | 0xffff},
		{1<<16 | 0xffff, 0, 2 << 16},
		{wire.MaxVersion - 1<<16, 5, wire.MaxVersion - 0xffff + 5},
		{wire.MaxVersion, 0xffff, wire.MaxVersion},
	} {
		require.Equal(t, c.want, NextVersion(c.v, c.random), "%d, %d", c.v, c.random)
	}
	const second = Version(1_700_000_000)
	at := time.Unix(int64(second), 5)
	for _, c := range []struct{ v, want Version }{
		{0, second<<16 | 7},                       // nothing is known of what was there
		{(second-1)<<16 | 0xffff, second<<16 | 7}, // the change of before
		{second << 16, (second+1)<<16 | 7},        // of the same second
		{wire.MaxVersion, wire.MaxVersion&^0xffff | 7},
	} {
		require.Equal(t, c.want, LaterVersion(c.v, at, 7), "%d", c.v)
	}
	require.Equal(t, NextVersion(0, 7), LaterVersion(0, time.Unix(-5, 0), 7))
	require.Equal(t, NextVersion(wire.MaxVersion, 7), LaterVersion(0, time.Unix(1<<62, 0), 7))
	v := Version(0)
	for i := range uint16(1000) {
		next := NextVersion(v, i*7919)
		require.Greater(t, next, v, "a change is newer, whatever its random bits")
		require.NotEqual(t, next, NextVersion(v, i*7919+1), "two changes made apart differ")
		v = next
	}
}

// holding returns a record of one live processor, a/1, and one document.
func holding(docs ...Document) *Record {
	r := standing(holder("a", "1", half))
	r.Documents = docs
	return r
}

func TestANinthDocumentIsRefused(t *testing.T) {
	r := holding()
	for i := range wire.MaxDocuments {
		_, _, err := r.Save(&DocumentReport{fmt.Sprint("d", 9-i), 1, 0, []byte("x")}, At{})
		require.NoError(t, err)
	}
	require.NoError(t, checkDocuments(r.Documents, false), "they are in order")
	_, changed, err := r.Save(&DocumentReport{"d0", 1, 0, []byte("x")}, At{})
	require.False(t, changed)
	require.EqualError(t, err, `consensus: Name is "d0", allowed: one of the 8 documents that the pool has already`)
}

// Nothing that a caller does to its slices reaches the record, or the other way round.
func TestDocumentsShareNoMemory(t *testing.T) {
	r := holding()
	body := []byte("mine")
	req := follow(Report{InUse: half})
	req.Documents = []DocumentReport{{"limit", 1, 0, body}}
	r.Sync(&req, after(time.Second))
	body[0] = 'X'
	docs, _, err := r.Load()
	require.NoError(t, err)
	require.Equal(t, []Document{{"limit", 1, []byte("mine")}}, docs)
	docs[0].Body[0] = 'Y'
	require.Equal(t, []byte("mine"), r.Documents[0].Body)
	b := written(t, r)
	parsed, err := ParseRecord(b)
	require.NoError(t, err)
	clear(b)
	require.Equal(t, r, parsed)
}

func TestLoadShowsTheLiveRows(t *testing.T) {
	live := holder("a", "1", half)
	live.Note = "max 10"
	r := standing(closed(RowReplaced, holder("a", "0", half)), live, closed(RowReplaced, holder("b", "1", half)))
	r.Rows[1].LastSeen = r.Clock - 3_000_000
	docs, roster, err := r.Load()
	require.NoError(t, err)
	require.Empty(t, docs)
	require.Equal(t, []RosterRow{{ID: "a", Claim: half, Demand: half, PoolSize: 2, Note: "max 10", Silent: 3 * time.Second, Left: 12 * time.Second}}, roster)
	r.Unstamped = r.Rows[1].RowKey
	_, roster, err = r.Load()
	require.NoError(t, err)
	require.Zero(t, roster[0].Silent, "it has made the last step, whenever that was")
}

// A document that is saved on a Deferred store stamps the step before it, and time goes on from there.
func TestASavedDocumentStampsTheLastStep(t *testing.T) {
	r := standing(holder("a", "1", half))
	r.Unstamped = r.Rows[0].RowKey
	at := after(time.Second)
	at.Deferred = true
	_, changed, err := r.Save(&DocumentReport{"limit", 1, 0, []byte("x")}, at)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, []int64{at.Now, at.Now, at.Now}, []int64{r.Rows[0].LastSeen, r.Clock, r.Wall})
}

func TestValidateDocuments(t *testing.T) {
	body, long := []byte("x"), make([]byte, wire.MaxDocumentBytes+1)
	for _, c := range []struct {
		reports []DocumentReport
		want    string
	}{
		{[]DocumentReport{{"az09_", wire.MaxVersion, wire.MaxVersion, long[1:]}, {"a", 1, 0, body}, {Name: "b"}, {"c", 2, 2, nil}, {"d", 2, 0, nil}}, ""},
		{make([]DocumentReport, 9), "Documents is 9 documents, allowed: at most 8"},
		{[]DocumentReport{{}}, `Name is "", allowed: 1 to 32 bytes of a-z, 0-9 and _`},
		{[]DocumentReport{{Name: strings.Repeat("n", 33)}}, `Name is "nnn`},
		{[]DocumentReport{{Name: "Limit"}}, `Name is "Limit"`},
		{[]DocumentReport{{Name: "a-b"}}, `Name is "a-b"`},
		{[]DocumentReport{{Name: "é"}}, `Name is "é"`},
		{[]DocumentReport{{Name: "a\x00"}}, `Name is "a\x00"`},
		{[]DocumentReport{{Name: "a"}, {Name: "b"}, {Name: "a"}}, `Name is "a" twice, allowed: each document once`},
		{[]DocumentReport{{"a", 1, 0, long}}, "Body is 4097 bytes, allowed: at most 4096"},
		{[]DocumentReport{{"a", 0, 0, body}}, "Version is 0, allowed: 1 to 9223372036854775807"},
		{[]DocumentReport{{"a", wire.MaxVersion + 1, 0, nil}}, "Version is 9223372036854775808, allowed: 0 to 9223372036854775807"},
		{[]DocumentReport{{"a", 5, 6, body}}, "Base is 6, allowed: 0 to Version"},
		{[]DocumentReport{{"a", 5, 6, nil}}, "Base is 6, allowed: 0 to Version"},
		{[]DocumentReport{{"a", 5, 4, nil}}, "Base is 4, allowed: 0 to Version; without a body 0 or Version"},
	} {
		req := follow(Report{})
		req.Documents = c.reports
		err := req.Validate()
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		var bad *RequestError
		require.ErrorAs(t, err, &bad)
		require.ErrorContains(t, err, c.want)
	}
	for note, want := range map[string]string{
		strings.Repeat("n", wire.MaxNoteBytes):   "",
		strings.Repeat("n", wire.MaxNoteBytes+1): "allowed: at most 128 bytes without NUL",
		"a\x00":                                  `Note is "a\x00"`,
	} {
		req := follow(Report{Note: note})
		if err := req.Validate(); want != "" {
			require.ErrorContains(t, err, want)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestValidateSave(t *testing.T) {
	good := DocumentReport{"limit", 6, 5, []byte("x")}
	require.NoError(t, good.ValidateSave("pool"))
	require.ErrorContains(t, good.ValidateSave(""), "Pool is")
	for want, d := range map[string]DocumentReport{
		"Name is": {"", 6, 5, []byte("x")},
		"Body is empty, allowed: 1 to 4096 bytes": {"limit", 6, 0, nil},
		"Base is 6, allowed: below Version":       {"limit", 6, 6, []byte("x")},
		"Version is 0":                            {"limit", 0, 0, []byte("x")},
		"Body is 4097 bytes":                      {"limit", 6, 5, make([]byte, 4097)},
	} {
		var bad *RequestError
		require.ErrorAs(t, d.ValidateSave("pool"), &bad)
		require.ErrorContains(t, d.ValidateSave("pool"), want)
	}
}

// A processor takes no answer with documents that no store keeps.
func TestAnswersWithWrongDocumentsAreRefused(t *testing.T) {
	good := Answer{Lease: MinLease, Grant: Grant{}}
	good.Documents = []Document{{Name: "a"}, {"b", wire.MaxVersion, make([]byte, wire.MaxDocumentBytes)}}
	require.NoError(t, good.Check())
	for name, docs := range map[string][]Document{
		"a body of no version": {{"a", 0, []byte("x")}},
		"a version of no body": {{"a", 1, nil}},
		"a far version":        {{"a", math.MaxUint64, []byte("x")}},
		"too large a body":     {{"a", 1, make([]byte, wire.MaxDocumentBytes+1)}},
		"an odd name":          {{"A", 1, []byte("x")}},
		"in the wrong order":   {{"b", 1, []byte("x")}, {Name: "a"}},
		"one twice":            {{"a", 1, []byte("x")}, {"a", 2, []byte("x")}},
		"too many":             make([]Document, 17),
	} {
		bad := good
		bad.Documents = docs
		require.ErrorIs(t, bad.Check(), ErrWrongAnswer, name)
	}
}

// A body replaces an older one if it was made from that, or from any. A document is listed unless the report says exactly what is there.
func TestWhichDocumentsAreTaken(t *testing.T) {
	for i := range 4 * 4 * 4 * 3 {
		current, version, base := Version(i%4), Version(i/4%4), Version(i/16%4)
		d := DocumentReport{"a", version, base, []byte([]string{"", "x", "y"}[i/64])}
		if d.validate() != nil {
			continue
		}
		record := func() *Record {
			if current == 0 {
				return holding()
			}
			return holding(Document{"a", current, []byte("x")})
		}
		name := fmt.Sprintf("%d on record, %+v", current, d)
		body := len(d.Body) > 0
		takes := body && version > current && (base == current || base == version)
		want := Document{"a", current, []byte("x")}
		if takes {
			want = Document{"a", version, d.Body}
		}
		r := record()
		r.takeDocuments([]DocumentReport{d})
		require.Equal(t, want.Version, r.document("a").Version, name)
		if want.Version > 0 {
			require.Equal(t, []Document{want}, r.Documents, name)
		}

		listed := record().unreported([]DocumentReport{d})
		switch same := version == current && (!body || string(d.Body) == "x"); {
		case current == 0 && version == 0, current > 0 && same:
			require.Empty(t, listed, name)
		case current == 0:
			require.Equal(t, []Document{{Name: "a"}}, listed, name)
		default:
			require.Equal(t, []Document{{"a", current, []byte("x")}}, listed, name)
		}

		if d.ValidateSave("pool") != nil {
			require.True(t, !body || base >= version, name)
			continue
		}
		r = record()
		is, changed, err := r.Save(&d, At{})
		require.Equal(t, want.Version, is, name)
		require.Equal(t, takes, changed, name)
		require.Equal(t, takes || version == current && string(d.Body) == "x", err == nil, name)
		require.Equal(t, record().Revision+map[bool]uint64{true: 1}[takes], r.Revision, name)
	}
	two := holding(Document{"a", 1, []byte("x")}, Document{"b", 1, []byte("x")})
	require.Equal(t, two.Documents[1:], two.unreported([]DocumentReport{{Name: "a", Version: 1}}), "the report is on the other")
}
