package natsstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

const (
	markerFormat = "1"

	// maxAhead is how far a marker may be ahead of a server's clock that was not set: the stream's information is older than a marker
	// written after it was requested.
	maxAhead = 15 * time.Second
	// renewal is how old a marker may get before the other one is written, so that one of them is old enough when the first expires.
	renewal = minRecordAge / 2
	// maintainEvery is how often a Store checks the markers, and maintainFor the longest time for that: the answer waits for it.
	maintainEvery = time.Hour
	maintainFor   = 100 * time.Millisecond
)

// markerKeys are never keys of pools: in those, "=" comes before a hexadecimal digit or another "=".
var markerKeys = [2]string{"=marker-1", "=marker-2"}

// A marker says since when the bucket has lost nothing without a trace.
type marker struct {
	life  string    // of the bucket and its keeper; "" vouches for nothing
	since time.Time // by the clock of that life
	seq   uint64    // of its entry
}

// value returns the marker as it is written. The life comes last, because it has spaces.
func (m *marker) value() []byte {
	return []byte(markerFormat + " " + strconv.FormatInt(m.since.UnixMicro(), 10) + " " + m.life)
}

// parseMarker reads the marker from its entry. The marker counts from the later of two times: the one it states, which is older than the
// write, and its own stamp. The server that stamped it need not be the one that it names.
func parseMarker(e *entry) (*marker, error) {
	if e.value == nil {
		return &marker{seq: e.seq}, nil
	}
	format, rest, _ := strings.Cut(string(e.value), " ")
	since, life, ok := strings.Cut(rest, " ")
	at, err := strconv.ParseInt(since, 10, 64)
	if format != markerFormat || !ok || life == "" || err != nil {
		return nil, fmt.Errorf("%w: it is not a marker of format %s", driver.ErrWrongAnswer, markerFormat)
	}
	m := &marker{life: life, since: time.UnixMicro(at), seq: e.seq}
	if e.created.After(m.since) {
		m.since = e.created
	}
	return m, nil
}

// life names the life of the data that the marker vouches for; "" if it cannot be named. A stream on several servers keeps acknowledged
// writes as long as one of them leads it. A stream on one server may lose the newest writes when its machine fails. Then the server's name
// stays the same and its ID changes, but only a direct client of the server knows the ID. A stream in memory vouches for nothing.
//
// Call it after the reads that it vouches for: if the connection was lost in between, it then has the ID of the server that answered them.
func (s line) life(info *streamInfo) string {
	identity, err := info.identity()
	if err != nil || info.TimeStamp == nil || info.Config.Storage != storageFile || info.Cluster == nil {
		return ""
	}
	if len(info.Cluster.Replicas) > 0 {
		return identity
	}
	name, id := s.server()
	if name != info.Cluster.Leader || id == "" {
		return ""
	}
	return identity + " " + id
}

// remembers returns for how long the bucket is known to have lost nothing without a trace; see the package documentation. It is for a pool
// just found absent, and info must have been requested before that. It writes a marker when one is due; any Store may do so.
func (s line) remembers(ctx context.Context, info *streamInfo) (time.Duration, error) {
	if info.TimeStamp == nil {
		return 0, nil
	}
	var read [len(markerKeys)]*marker
	for i, key := range markerKeys {
		var err error
		if read[i], err = s.marker(ctx, key, info); err != nil {
			return 0, err
		}
	}
	life := s.life(info)
	if life == "" {
		return 0, nil
	}
	oldest := time.Duration(-1)
	var subject string // of the first that vouches for nothing
	var seq uint64
	for i, m := range read {
		if age := info.TimeStamp.Sub(m.since); m.life == life && age >= -maxAhead {
			oldest = max(oldest, age, 0)
		} else if subject == "" {
			subject, seq = s.prefix+markerKeys[i], m.seq
		}
	}
	if subject != "" && (oldest < 0 || oldest > renewal) {
		fresh := marker{life: life, since: *info.TimeStamp}
		err := s.write(ctx, subject, fresh.value(), seq, info)
		if err != nil && !errors.Is(err, driver.ErrContention) {
			return 0, err
		}
	}
	return max(oldest, 0), nil
}

// marker reads one of the markers; a missing marker vouches for nothing.
func (s line) marker(ctx context.Context, key string, info *streamInfo) (*marker, error) {
	if info.State.LastSeq == 0 {
		return &marker{}, nil // see read
	}
	subject := s.prefix + key
	e, err := s.get(ctx, subject)
	switch {
	case is(err, codeStreamNotFound):
		return nil, errGone
	case err != nil:
		return nil, err
	}
	m, err := parseMarker(e)
	if err != nil {
		return nil, fmt.Errorf("natsstore: the value at %s: %w", subject, err)
	}
	return m, nil
}

// A maintaining records when a Store last checked the markers.
type maintaining struct {
	mu   sync.Mutex
	life string
	at   time.Time
}

// due reports whether a check is due, and records it as done.
func (t *maintaining) due(life string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if life == "" || life == t.life && now.Sub(t.at) < maintainEvery {
		return false
	}
	t.life, t.at = life, now
	return true
}

// maintain ensures that there is a marker of this life, so that a later pool is known to be new. Errors do not matter: the first sync of a new
// pool meets them again and reports them.
func (s line) maintain(ctx context.Context, info *streamInfo) {
	if !s.maintaining.due(s.life(info), time.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maintainFor)
	defer cancel()
	_, _ = s.remembers(ctx, info)
}

// confirm confirms a write under an identity read some time before: of a pool taken for new, or after others had written first. The write
// may have reached another bucket or leader than that identity. Then the error is not a passing one, because a repeat of the same request
// would receive its old answer. The next request finds another identity, and freezes the pool.
func (s line) confirm(ctx context.Context, pool, identity string) error {
	info, err := s.info(ctx)
	var now string
	if err == nil {
		now, err = info.identity()
	}
	if again, ok := errors.AsType[passing](err); ok {
		err = again.error
	}
	if err == nil && now != identity {
		err = errors.New("the bucket was made anew, or has another leader")
	}
	if err != nil {
		return fmt.Errorf("natsstore: pool %q was written, but the answer is void: %w", pool, err)
	}
	return nil
}
