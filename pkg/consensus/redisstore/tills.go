package redisstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.TillSetter = (*Store)(nil)

// Tills implements driver.TillReader. It returns the errors of Load. It is three HGETALL in one round trip, the pool's first, which a
// client that reads from replicas may send to a replica.
func (s *Store) Tills(ctx context.Context, pool string) ([]driver.Till, error) {
	if err := cmp.Or(s.fault, driver.ValidatePool(pool)); err != nil {
		return nil, err
	}
	key, _ := s.keys(pool)
	var fields, values, names *redis.MapStringStringCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		fields, values, names = p.HGetAll(ctx, key), p.HGetAll(ctx, tillsKey(key)), p.HGetAll(ctx, namesKey(key))
		return nil
	})
	if fields.Err() == nil { // Without tills, their keys may hold anything.
		err = nil
		if _, has := fields.Val()[tillsField]; has {
			err = values.Err()
		}
		if _, has := fields.Val()[namesField]; has {
			err = cmp.Or(err, names.Err())
		}
	}
	if err != nil {
		return nil, explain("tills", pool, s.prefix, err)
	}
	tills, err := parseTills(fields.Val(), values.Val(), names.Val())
	if err != nil {
		return nil, fmt.Errorf("redisstore: tills of pool %q: %w", pool, err)
	}
	return tills, nil
}

// SetSpent implements driver.TillSetter. It returns the errors of Save and those listed at TillSetter.
func (s *Store) SetSpent(ctx context.Context, pool string, r driver.SpentReport) error {
	if err := cmp.Or(s.fault, r.Validate(pool)); err != nil {
		return err
	}
	key, marker := s.keys(pool)
	reply, err := spentScript.Run(ctx, s.client, []string{key, marker, tillsKey(key), namesKey(key), sketchKey(key)},
		string(binary.BigEndian.AppendUint64(nil, r.Key)), string(appendNumbers(nil, r.Start, r.End, r.Tokens))).Result()
	if err != nil {
		return explain("set spent", pool, s.prefix, err)
	}
	if err = parseSetSpent(reply, &r); err != nil {
		return fmt.Errorf("redisstore: what is spent in pool %q: %w", pool, err)
	}
	return nil
}

// parseSetSpent reads the reply of the script that sets the spent amount.
func parseSetSpent(reply any, r *driver.SpentReport) error {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return wrongAnswer("not a list of two")
	}
	word, _ := parts[0].(string)
	text, _ := parts[1].(string)
	now, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return wrongAnswer("the time is %.40q", text)
	}
	switch word {
	case "set":
		return nil
	case "no pool":
		return driver.ErrNoPool
	case "window":
		return r.OutsideWindow(int64(now))
	case "full":
		return r.NoTillLeft()
	case "lost":
		return driver.ErrTillsLost
	}
	return wrongAnswer("unknown outcome %.40q", word)
}

// parseTills reads the tills of a pool from the fields of its hash, of the tills' hash and of the names' hash. Every error wraps
// driver.ErrWrongAnswer or driver.ErrNoPool.
func parseTills(fields, values, names map[string]string) ([]driver.Till, error) {
	if len(fields) == 0 {
		return nil, driver.ErrNoPool
	}
	if _, _, ok := clockOf(fields); !ok {
		return nil, wrongAnswer("the pool is not of format 1")
	}
	var rec driver.Record
	rec.Revision = 1
	var err error
	if _, has := fields[tillsField]; has {
		if rec.Tills, err = parseHash(values, driver.CheckTills); err != nil {
			return nil, err
		}
	}
	if _, has := fields[namesField]; has {
		if rec.Names.Tills, err = parseHash(names, driver.CheckNames); err != nil {
			return nil, err
		}
	}
	return rec.LoadTills()
}

// parseHash reads the tills of one hash, sorted by key.
func parseHash(values map[string]string, check func([]driver.Till) error) ([]driver.Till, error) {
	tills := make([]driver.Till, 0, len(values))
	for name, value := range values {
		t, ok := parseTill(name, value)
		if !ok {
			return nil, wrongAnswer("a till is not of format 1")
		}
		tills = append(tills, t)
	}
	slices.SortFunc(tills, func(a, b driver.Till) int { return cmp.Compare(a.Key, b.Key) })
	if err := check(tills); err != nil {
		return nil, wrongAnswer("%v", err)
	}
	return tills, nil
}

// parseTill reads one field of the tills' hash; see lua/tills.lua.
func parseTill(name, value string) (t driver.Till, ok bool) {
	if len(name) != 8 || len(value) < 8 {
		return t, false
	}
	t = driver.Till{
		Key:     binary.BigEndian.Uint64([]byte(name)),
		Version: driver.Version(binary.BigEndian.Uint64([]byte(value[:8]))),
	}
	r := numberReader{packed: value[8:]}
	t.Paid, t.Full = r.number(), r.number()
	for r.packed != "" && !r.faulty {
		t.Spent = append(t.Spent, driver.Spent{Start: r.number(), End: r.number(), Tokens: r.number()})
	}
	return t, !r.faulty
}
