package natsstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

var _ driver.Lister = (*Store)(nil)

// listTimeout bounds one page of the list: for each, the server walks through all keys of the bucket.
const listTimeout = 5 * time.Second

// subjectsRequest requests the subjects of a stream that match a filter, starting at an offset.
//
//nolint:tagliatelle // the names are JetStream's
type subjectsRequest struct {
	Filter string `json:"subjects_filter"`
	Offset int    `json:"offset,omitempty"`
}

// subjectsReply is a page of matching subjects.
type subjectsReply struct {
	apiReply
	Total int `json:"total"`
	State struct {
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
}

// Pools implements [driver.Lister]. It omits pools with names so long that their keys are hashes, and pools deleted by a bucket tool. Without
// a bucket there are none. It needs only permissions that Sync needs too.
func (s *Store) Pools(ctx context.Context) (names []string, err error) {
	l := s.lines.pick(ctx, s)
	for offset := 0; ; {
		var page subjectsReply
		err := l.ask(ctx, listTimeout, s.api("STREAM.INFO"), subjectsRequest{Filter: s.subjects, Offset: offset}, &page)
		if is(err, codeStreamNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("natsstore: listing pools: %w", err)
		}
		for subject := range page.State.Subjects {
			if name, ok := poolOf(strings.TrimPrefix(subject, s.prefix)); ok {
				names = append(names, name)
			}
		}
		offset += len(page.State.Subjects)
		if len(page.State.Subjects) == 0 || offset >= page.Total {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}

// poolOf returns the pool of a key, if keyOf returns that key for a pool without hashing.
func poolOf(key string) (pool string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(key); i++ {
		if key[i] != escape {
			b.WriteByte(key[i])
			continue
		}
		if i+2 >= len(key) {
			return "", false
		}
		high, low := strings.IndexByte(hexDigits, key[i+1]), strings.IndexByte(hexDigits, key[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	pool = b.String()
	return pool, pool != "" && keyOf(pool) == key && driver.ValidatePool(pool) == nil
}
