package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// documentField is the prefix of the field names of documents; see lua/document.lua.
const documentField = "\x00doc\x00"

// Load implements [driver.Store]. It returns the errors of Sync, or an error that wraps [driver.ErrNoPool]. It is one HGETALL, which a client
// that reads from replicas may send to a replica.
func (s *Store) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	if err := cmp.Or(s.fault, driver.ValidatePool(pool)); err != nil {
		return nil, nil, err
	}
	key, _ := s.keys(pool)
	fields, err := s.client.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, nil, explain("load", pool, s.prefix, err)
	}
	docs, roster, err := parseLoad(fields)
	if err != nil {
		return nil, nil, fmt.Errorf("redisstore: load of pool %q: %w", pool, err)
	}
	return docs, roster, nil
}

// Age implements [driver.Ager]. It returns the errors of Load.
func (s *Store) Age(ctx context.Context, pool string) (time.Duration, error) {
	if err := cmp.Or(s.fault, driver.ValidatePool(pool)); err != nil {
		return 0, err
	}
	key, _ := s.keys(pool)
	values, err := s.client.HMGet(ctx, key, metaField, permitsField).Result()
	if err != nil {
		return 0, explain("load", pool, s.prefix, err)
	}
	meta, _ := values[0].(string)
	words := strings.Fields(meta)
	if len(words) == 0 {
		return 0, fmt.Errorf("redisstore: load of pool %q: %w", pool, driver.ErrNoPool)
	}
	if len(words) != metaWords || words[0] != "1" {
		return 0, fmt.Errorf("redisstore: load of pool %q: %w", pool, wrongAnswer("the pool is not of format 1"))
	}
	wall, err := strconv.ParseUint(words[4], 10, 53)
	if err != nil {
		return 0, fmt.Errorf("redisstore: load of pool %q: %w", pool, wrongAnswer("the pool has no time"))
	}
	last := float64(wall)
	if packed, _ := values[1].(string); len(packed) > 8*permitsNumbers {
		if newer := permitsNumber(packed, clockNumber+1); newer > last && newer <= maxTime {
			last = newer
		}
	}
	now, err := s.client.Time(ctx).Result()
	if err != nil || last == 0 {
		return 0, nil //nolint:nilerr // a user without +time may see all else
	}
	return max(0, now.Sub(time.UnixMicro(int64(last)))), nil
}

// parseLoad reads the fields of a pool. Every error wraps driver.ErrWrongAnswer or
// driver.ErrNoPool.
func parseLoad(fields map[string]string) ([]driver.Document, []driver.RosterRow, error) {
	if len(fields) == 0 {
		return nil, nil, driver.ErrNoPool
	}
	clock, lease, ok := clockOf(fields)
	if !ok {
		return nil, nil, wrongAnswer("the pool is not of format 1")
	}
	var c contents
	for name, value := range fields {
		if err := c.add(name, value); err != nil {
			return nil, nil, err
		}
	}
	if err := c.sort(); err != nil {
		return nil, nil, err
	}
	rec := driver.Record{Revision: 1, Clock: clock, Lease: lease, Rows: c.rows, Documents: c.unreported(nil)}
	return rec.Load()
}

// clockOf returns the pool's logical clock and its lease; see lua/record.lua and lua/permit.lua.
func clockOf(fields map[string]string) (micros int64, lease time.Duration, ok bool) {
	words := strings.Fields(fields[metaField])
	if len(words) != metaWords || words[0] != "1" {
		return 0, 0, false
	}
	clock, err := strconv.ParseUint(words[3], 10, 53)
	millis, err2 := strconv.ParseUint(words[8], 10, 32)
	micros, lease, ok = int64(clock), time.Duration(millis)*time.Millisecond, err == nil && err2 == nil
	if packed := fields[permitsField]; len(packed) > 8*permitsNumbers {
		if newer := permitsNumber(packed, clockNumber); newer >= 0 && newer <= maxTime { // also false for a NaN
			micros = int64(newer)
		}
	}
	return micros, lease, ok
}

// metaWords is the number of words in the field meta.
const metaWords = 15

// Save implements [driver.Store]. It returns the errors of Sync, a *driver.ConflictError, or an error that wraps [driver.ErrNoPool].
func (s *Store) Save(ctx context.Context, pool string, d driver.DocumentReport) (driver.Version, error) {
	if err := cmp.Or(s.fault, d.ValidateSave(pool)); err != nil {
		return 0, err
	}
	key, _ := s.keys(pool)
	reply, err := saveScript.Run(ctx, s.client, []string{key}, saveArgs(&d)...).Result()
	if err != nil {
		return 0, explain("save", pool, s.prefix, err)
	}
	current, err := parseSave(reply, &d)
	if err != nil {
		err = fmt.Errorf("redisstore: save of pool %q: %w", pool, err)
	}
	return current, err
}

// parseSave reads the reply of the save script.
func parseSave(reply any, d *driver.DocumentReport) (driver.Version, error) {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return 0, wrongAnswer("not a list of two")
	}
	word, _ := parts[0].(string)
	text, _ := parts[1].(string)
	current, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, wrongAnswer("the version is %.40q", text)
	}
	switch word {
	case "saved":
		return d.Version, nil
	case "conflict":
		return driver.Version(current), &driver.ConflictError{Name: d.Name, Base: d.Base, Current: driver.Version(current)}
	case "no pool":
		return 0, driver.ErrNoPool
	case "too many":
		return 0, &driver.RequestError{
			Field: "Name", Value: strconv.Quote(d.Name),
			Allowed: fmt.Sprint("one of the ", wire.MaxDocuments, " documents that the pool has already"),
		}
	}
	return 0, wrongAnswer("unknown outcome %.40q", word)
}

// A document is a document on record, without its body if it is as reported.
type document = driver.Document

// A document whose field has another form counts as the oldest version, with a body that no reader can read; see lua/document.lua.
const (
	damagedVersion = 1
	damagedBody    = "damaged"
)

// addDocument adds the field of a document. One of another name is left out.
func (c *contents) addDocument(field, value string) {
	name, ok := strings.CutPrefix(field, documentField)
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }
	if !ok || name == "" || len(name) > 32 || strings.ContainsFunc(name, other) {
		return
	}
	digits, body, whole := strings.Cut(value, " ")
	version, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || digits[0] == '0' || whole && body == "" || len(body) > wire.MaxDocumentBytes {
		version, body = damagedVersion, damagedBody
	}
	c.docs = append(c.docs, document{Name: name, Version: driver.Version(version), Body: []byte(body)})
}

// unreported lists the documents that differ from those reported in the request, including reported documents that the store lacks.
func (c *contents) unreported(reports []driver.DocumentReport) (docs []document) {
	for _, d := range c.docs {
		reported := func(r driver.DocumentReport) bool { return r.Name == d.Name && r.Version == d.Version }
		switch {
		case len(d.Body) > 0:
			docs = append(docs, d)
		case !slices.ContainsFunc(reports, reported):
			docs = append(docs, document{Name: d.Name, Version: damagedVersion, Body: []byte(damagedBody)})
		}
	}
	for i := range reports {
		r := &reports[i]
		if r.Version > 0 && !slices.ContainsFunc(c.docs, func(d document) bool { return d.Name == r.Name }) {
			docs = append(docs, document{Name: r.Name})
		}
	}
	slices.SortFunc(docs, func(a, b document) int { return strings.Compare(a.Name, b.Name) })
	return docs
}
