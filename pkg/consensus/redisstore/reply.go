package redisstore

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// The layout of the hash that holds a pool; see lua/record.lua.
const (
	metaField    = "meta"
	noCause      = "-"
	maxPoolSize  = 1_000_000
	maxTime      = 1 << 53 // microseconds that the server's doubles hold exactly
	grantedParts = 13
)

var statuses = map[string]driver.Status{
	"granted":  driver.Granted,
	"late":     driver.Late,
	"replaced": driver.Replaced,
	"cloned":   driver.Cloned,
	"removed":  driver.Removed,
	"behind":   driver.Behind,
}

// parseSync reads the reply of the sync script. policy is the server's eviction policy if it was requested and returned. Every error wraps
// driver.ErrWrongAnswer.
func parseSync(reply any, req *driver.Request) (answer driver.Answer, policy string, err error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) == 0 {
		return answer, "", wrongAnswer("not a list")
	}
	word, _ := parts[0].(string)
	status, ok := statuses[word]
	if !ok {
		return answer, "", wrongAnswer("unknown status %.40q", word)
	}
	answer = driver.Answer{Status: status, Seq: req.Seq, Nonce: req.Nonce}
	if status == driver.Behind {
		answer.Newest, err = parseNewest(parts)
		return answer, "", err
	}
	if status != driver.Granted {
		return answer, "", nil
	}
	if len(parts) != grantedParts {
		return driver.Answer{}, "", wrongAnswer("%d parts, want %d", len(parts), grantedParts)
	}
	if err := parseHead(parts, &answer); err != nil {
		return driver.Answer{}, "", err
	}
	policy, _ = parts[6].(string)
	fields, ok := parts[7].([]any)
	if !ok {
		return driver.Answer{}, "", wrongAnswer("the rows are not a list")
	}
	c, own, err := parseFields(fields, req)
	if err != nil {
		return driver.Answer{}, "", err
	}
	answer.Documents = c.unreported(req.Documents)
	if answer.Draws, err = parseDraws(parts[10], req); err != nil {
		return driver.Answer{}, "", err
	}
	if answer.TagSlots, err = parseTagGrants(parts[12], req); err != nil {
		return driver.Answer{}, "", err
	}
	answer.Issuing = issues(fields)
	rec := driver.Record{Lease: answer.Lease, Rows: c.rows}
	answer.Grant = rec.Grant(answer.Time)
	answer.Closed = min(c.closed, driver.Whole)
	answer.Share = c.rows[own].Answered
	return answer, policy, nil
}

// parseNewest reads the newest request known to a record that is behind.
func parseNewest(parts []any) (newest driver.Ticket, err error) {
	if len(parts) != 3 {
		return newest, wrongAnswer("%d parts, want 3", len(parts))
	}
	seq, _ := parts[1].(string)
	nonce, _ := parts[2].(string)
	var err1, err2 error
	newest.Seq, err1 = strconv.ParseUint(seq, 10, 64)
	newest.Nonce, err2 = strconv.ParseUint(nonce, 10, 64)
	if cmp.Or(err1, err2) != nil {
		return driver.Ticket{}, wrongAnswer("the newest request is %.40q, %.40q", seq, nonce)
	}
	return newest, nil
}

// parseHead reads the parts of a granted reply that are about the whole pool.
func parseHead(parts []any, answer *driver.Answer) error {
	var text [8]string
	for i, part := range []int{1, 2, 3, 4, 5, 8, 9, 11} {
		var ok bool
		if text[i], ok = parts[part].(string); !ok {
			return wrongAnswer("part %d is not a string", part)
		}
	}
	at, err1 := strconv.ParseUint(text[0], 10, 53)
	revision, err2 := strconv.ParseUint(text[1], 10, 63) // no request can report a larger one back
	lease, err3 := strconv.ParseUint(text[2], 10, 53)
	frozen, err4 := strconv.ParseUint(text[3], 10, 53)
	began, err5 := strconv.ParseUint(text[5], 10, 53)
	slept, err6 := strconv.ParseUint(text[6], 10, 53)
	wall, err7 := strconv.ParseUint(text[7], 10, 53)
	if err := cmp.Or(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return wrongAnswer("one of time, revision, lease, freeze, beginning, silence and the server's time is no such number: %.40q", text)
	}
	if lease == 0 || lease > uint64(driver.MaxLease/time.Millisecond) {
		return wrongAnswer("the pool's lease is %d ms", lease)
	}
	answer.Time, answer.Revision, answer.Wall = int64(at), revision, int64(wall)
	answer.Epoch, answer.Silence = int64(began), time.Duration(slept)*time.Microsecond
	answer.Lease = time.Duration(lease) * time.Millisecond
	if frozen > 0 {
		answer.Frozen = time.Duration(frozen) * time.Microsecond
		if text[4] != noCause {
			answer.FrozenBy = driver.FreezeCause(text[4])
		}
	}
	return nil
}

// contents are the fields of a pool: its live rows, sorted by ID, what all others claim, and its documents.
type contents struct {
	rows   []driver.Row
	closed driver.Share
	docs   []document
}

// parseFields returns the contents of a pool's fields, and the index of the requester's row, which must exist.
func parseFields(fields []any, req *driver.Request) (c contents, own int, err error) {
	if len(fields)%2 != 0 {
		return c, 0, wrongAnswer("%d names and values", len(fields))
	}
	c.rows = make([]driver.Row, 0, len(fields)/2)
	for i := 0; i < len(fields); i += 2 {
		name, isName := fields[i].(string)
		value, isValue := fields[i+1].(string)
		if !isName || !isValue {
			return c, 0, wrongAnswer("field %d is not of strings", i/2)
		}
		if err := c.add(name, value); err != nil {
			return c, 0, err
		}
	}
	if err := c.sort(); err != nil {
		return c, 0, err
	}
	own, ok := slices.BinarySearchFunc(c.rows, req.ID, func(r driver.Row, id string) int { return cmp.Compare(r.ID, id) })
	if !ok || c.rows[own].Seq != req.Seq || c.rows[own].Nonce != req.Nonce {
		return c, 0, wrongAnswer("the request is not among the rows")
	}
	return c, own, nil
}

// add adds one field.
func (c *contents) add(name, value string) error {
	if name == metaField || name == permitsField || name == tagBucketsField || name == namesField {
		return nil
	}
	id, incarnation, _ := strings.Cut(name, "\x00")
	switch {
	case id == "":
		c.addDocument(name, value)
		return nil
	case incarnation == "":
		return nil // whatever it is, no step looks at it
	}
	r, err := parseRow(value)
	if err != nil {
		return fmt.Errorf("%w: %.40q; delete the pool's key, then the pool begins anew, with a freeze", err, name)
	}
	if r.State != driver.RowLive {
		c.closed += r.Claim
		return nil
	}
	r.RowKey = driver.RowKey{ID: id, Incarnation: incarnation}
	c.rows = append(c.rows, r)
	return nil
}

// sort sorts the rows and documents. It returns an error for a duplicate document, and for too many documents.
func (c *contents) sort() error {
	slices.SortFunc(c.rows, func(a, b driver.Row) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(c.docs, func(a, b document) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(c.docs); i++ {
		if c.docs[i].Name == c.docs[i-1].Name {
			return wrongAnswer("the document %q is there twice", c.docs[i].Name)
		}
	}
	if len(c.docs) > wire.MaxDocuments {
		return wrongAnswer("%d documents", len(c.docs))
	}
	return nil
}

// parseRow reads the value of a row: of one that is not live only what it claims.
func parseRow(value string) (r driver.Row, err error) {
	f := fieldReader{rest: value}
	r.State = driver.RowState(f.number(uint64(driver.RowLeft)))
	r.LastSeen = int64(f.number(maxTime))
	r.Claim = f.share() // the larger of the next two
	if f.ok() && r.State != driver.RowLive {
		return r, nil
	}
	r.Seq, r.Nonce = f.number(1<<64-1), f.number(1<<64-1)
	r.InUse, r.Answered, r.Demand = f.share(), f.share(), f.share()
	r.PoolSize, r.TagClaims = f.sizeAndClaims()
	r.Claim = max(r.InUse, r.Answered)
	var more bool
	r.Note, r.Busy, more = strings.Cut(f.rest, "\x00")
	if !f.ok() || more && r.Busy == "" || len(r.Busy) > wire.MaxBusyBytes || driver.ValidateNote(r.Note) != nil {
		return driver.Row{}, wrongAnswer("a row is malformed")
	}
	return r, nil
}

// fieldReader reads the parts of a value, separated by blanks. After the first fault it returns zeros.
type fieldReader struct {
	rest   string
	faulty bool
}

func (f *fieldReader) ok() bool { return !f.faulty }

// number reads a decimal number of at most limit.
func (f *fieldReader) number(limit uint64) uint64 {
	digits, rest, _ := strings.Cut(f.rest, " ")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n > limit {
		f.faulty, f.rest = true, ""
		return 0
	}
	f.rest = rest
	return n
}

func (f *fieldReader) share() driver.Share {
	return driver.Share(f.number(uint64(driver.Whole)))
}

// sizeAndClaims reads a pool size, and the slots of tags that follow it if it names their bytes; see lua/tagslots.lua.
func (f *fieldReader) sizeAndClaims() (poolSize int, claims []driver.TagClaim) {
	word, rest, _ := strings.Cut(f.rest, " ")
	digits, bytes, more := strings.Cut(word, "+")
	f.rest = digits + " "
	if poolSize = int(f.number(maxPoolSize)); f.faulty || !more {
		f.rest = rest
		return poolSize, nil
	}
	n, err := strconv.ParseUint(bytes, 10, 31)
	if f.faulty = err != nil || int(n) > len(rest); f.faulty {
		return 0, nil
	}
	f.rest = rest[n:]
	if claims, err = parseTagClaims(rest[:n]); err != nil {
		f.faulty = true
	}
	return poolSize, claims
}

func wrongAnswer(format string, args ...any) error {
	return fmt.Errorf("%w: %s", driver.ErrWrongAnswer, fmt.Sprintf(format, args...))
}
