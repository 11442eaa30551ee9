package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.Lister = (*Store)(nil)

// scanCount is how many of the server's keys one SCAN reads: few round trips, of about a millisecond each.
const scanCount = 1000

// Pools implements [driver.Lister] by SCAN, at every master of a Cluster. It reads all keys of the database, a thousand at a time, and blocks
// nobody. It fails for an invalid option; other errors are those of the client or the server.
func (s *Store) Pools(ctx context.Context) ([]string, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	var names []string
	var err error
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		var mu sync.Mutex
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			found, err := s.scan(ctx, node)
			mu.Lock()
			defer mu.Unlock()
			names = append(names, found...)
			return err
		})
	} else {
		names, err = s.scan(ctx, s.client)
	}
	if err != nil {
		if grant := lacking("list", err.Error(), s.prefix); grant != "" {
			return nil, fmt.Errorf("redisstore: listing pools: the ACL user lacks a permission: grant %s: %w", grant, err)
		}
		return nil, fmt.Errorf("redisstore: listing pools: %w", err)
	}
	slices.Sort(names) // SCAN may return a key twice
	return slices.Compact(names), nil
}

// scan returns the pools of one server.
func (s *Store) scan(ctx context.Context, node redis.Cmdable) (names []string, err error) {
	keys := node.Scan(ctx, 0, "{"+escapeGlob(s.prefix)+":*}:pool:*", scanCount).Iterator()
	for keys.Next(ctx) {
		// The pattern may match names of other groups inside a pool's name, so check that the name leads to the key.
		_, name, _ := strings.Cut(keys.Val(), "}:pool:")
		if key, _ := s.keys(name); key == keys.Val() {
			names = append(names, name)
		}
	}
	return names, keys.Err()
}

// escapeGlob returns a SCAN pattern that matches only text.
func escapeGlob(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`*?[]^\`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
