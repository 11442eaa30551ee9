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

var _ driver.TagBucketSetter = (*Store)(nil)

// TagBuckets implements [driver.TagBucketReader]. It returns the errors of Load. It is three HGETALL in one round trip, the pool's first, which a
// client that reads from replicas may send to a replica.
func (s *Store) TagBuckets(ctx context.Context, pool string) ([]driver.TagBucket, error) {
	if err := cmp.Or(s.fault, driver.ValidatePool(pool)); err != nil {
		return nil, err
	}
	key, _ := s.keys(pool)
	var fields, values, names *redis.MapStringStringCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		fields, values, names = p.HGetAll(ctx, key), p.HGetAll(ctx, tagBucketsKey(key)), p.HGetAll(ctx, namesKey(key))
		return nil
	})
	if fields.Err() == nil { // Without tag buckets, their keys may hold anything.
		err = nil
		if _, has := fields.Val()[tagBucketsField]; has {
			err = values.Err()
		}
		if _, has := fields.Val()[namesField]; has {
			err = cmp.Or(err, names.Err())
		}
	}
	if err != nil {
		return nil, explain("tag buckets", pool, s.prefix, err)
	}
	tagBuckets, err := parseTagBuckets(fields.Val(), values.Val(), names.Val())
	if err != nil {
		return nil, fmt.Errorf("redisstore: tag buckets of pool %q: %w", pool, err)
	}
	return tagBuckets, nil
}

// SetSpent implements [driver.TagBucketSetter]. It returns the errors of Save and those listed at TagBucketSetter.
func (s *Store) SetSpent(ctx context.Context, pool string, r driver.SpentReport) error {
	if err := cmp.Or(s.fault, r.Validate(pool)); err != nil {
		return err
	}
	key, marker := s.keys(pool)
	reply, err := spentScript.Run(ctx, s.client, []string{key, marker, tagBucketsKey(key), namesKey(key), sketchKey(key)},
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
		return r.NoTagBucketLeft()
	case "lost":
		return driver.ErrTagBucketsLost
	}
	return wrongAnswer("unknown outcome %.40q", word)
}

// parseTagBuckets reads the tag buckets of a pool from the fields of its hash, of the tag buckets' hash and of the names' hash. Every error wraps
// driver.ErrWrongAnswer or driver.ErrNoPool.
func parseTagBuckets(fields, values, names map[string]string) ([]driver.TagBucket, error) {
	if len(fields) == 0 {
		return nil, driver.ErrNoPool
	}
	if _, _, ok := clockOf(fields); !ok {
		return nil, wrongAnswer("the pool is not of format 1")
	}
	var rec driver.Record
	rec.Revision = 1
	var err error
	if _, has := fields[tagBucketsField]; has {
		if rec.TagBuckets, err = parseHash(values, driver.CheckTagBuckets); err != nil {
			return nil, err
		}
	}
	if _, has := fields[namesField]; has {
		if rec.Names.TagBuckets, err = parseHash(names, driver.CheckNames); err != nil {
			return nil, err
		}
	}
	return rec.LoadTagBuckets()
}

// parseHash reads the tag buckets of one hash, sorted by key.
func parseHash(values map[string]string, check func([]driver.TagBucket) error) ([]driver.TagBucket, error) {
	tagBuckets := make([]driver.TagBucket, 0, len(values))
	for name, value := range values {
		t, ok := parseTagBucket(name, value)
		if !ok {
			return nil, wrongAnswer("a tag bucket is not of format 1")
		}
		tagBuckets = append(tagBuckets, t)
	}
	slices.SortFunc(tagBuckets, func(a, b driver.TagBucket) int { return cmp.Compare(a.Key, b.Key) })
	if err := check(tagBuckets); err != nil {
		return nil, wrongAnswer("%v", err)
	}
	return tagBuckets, nil
}

// parseTagBucket reads one field of the tag buckets' hash; see lua/tagbuckets.lua.
func parseTagBucket(name, value string) (t driver.TagBucket, ok bool) {
	if len(name) != 8 || len(value) < 8 {
		return t, false
	}
	t = driver.TagBucket{
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
