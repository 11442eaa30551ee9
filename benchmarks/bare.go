package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
)

// bareScript spaces permits by what one key says of the next: ARGV are the spacing and
// how far ahead a permit may lie, in microseconds.
var bareScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local slot = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
local ahead = slot - now - ARGV[2]
if ahead > 0 then return { 0, ahead } end
redis.call('SET', KEYS[1], string.format('%.0f', slot + ARGV[1]), 'PX', 86400000)
return { 1, slot - now }
`)

// bareRedis takes permits by bareScript.
func bareRedis(client redis.UniversalClient, key string) permitClient {
	return func(ctx context.Context) (int, error) {
		reply, err := bareScript.Run(ctx, client, []string{key}, 1, 1000).Int64Slice()
		if err != nil || len(reply) != 2 {
			return 0, err
		}
		return int(reply[0]), nil
	}
}

// bareNATS takes permits from one entry of a bucket: it reads the entry, and writes the
// next time back on condition that nobody else has.
func bareNATS(ctx context.Context, nc *nats.Conn, key string) (permitClient, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "bare", Storage: jetstream.FileStorage})
	if err != nil {
		return nil, fmt.Errorf("bucket of the bare client: %w", err)
	}
	if _, err := kv.Create(ctx, key, make([]byte, 8)); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return nil, err
	}
	return func(ctx context.Context) (int, error) {
		for {
			entry, err := kv.Get(ctx, key)
			if err != nil {
				return 0, err
			}
			slot := max(entry.Created().UnixMicro(), int64(binary.BigEndian.Uint64(entry.Value())))
			next := binary.BigEndian.AppendUint64(nil, uint64(slot+time.Microsecond.Microseconds()))
			if _, err = kv.Update(ctx, key, next, entry.Revision()); !errors.Is(err, jetstream.ErrKeyExists) {
				return 1, err
			}
		}
	}, nil
}
