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

	// maxAhead is how far a marker may be ahead of a server's clock that nobody has set: the
	// stream's information is older than a marker that was written after it was asked for.
	maxAhead = 15 * time.Second
	// renewal is how old a marker may be until the other one is written, so that one of
	// them is old enough when this one expires.
	renewal = minRecordAge / 2
	// tendEvery is how often a Store looks after the markers, and tendFor for how long at most: the
	// answer waits for it.
	tendEvery = time.Hour
	tendFor   = 100 * time.Millisecond
)

// markerKeys are no pool's: in the key of a pool an "=" comes before a hexadecimal
// digit or another "=".
var markerKeys = [2]string{"=marker-1", "=marker-2"}

// A marker says since when the bucket has forgotten nothing of which there is no trace.
type marker struct {
	life  string    // of the bucket and of who keeps it; "" vouches for nothing
	since time.Time // by the clock of that life
	seq   uint64    // of its entry
}

// value returns what is written of the marker. The life comes last, for it has spaces.
func (m *marker) value() []byte {
	return []byte(markerFormat + " " + strconv.FormatInt(m.since.UnixMicro(), 10) + " " + m.life)
}

// parseMarker reads the marker from its entry. The marker counts from the later one of what it
// says and of its own stamp: the server that stamped it need not be the one that it names, and what it
// says is older than the write.
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

// life names the life of the data that the marker vouches for; "" where none can be
// named. A stream on several servers keeps what it has acknowledged as long as one of them
// leads it. A stream on one server may lose the newest writes when its machine fails, and the
// server's name is the same after that; its ID is not, and only a client of the server itself
// knows that. A stream in memory vouches for nothing.
//
// It must be asked for after the reads that it is to vouch for: then a connection
// that was lost in between has the ID of the server that answered them.
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

// remembers returns for how long the bucket is known to have forgotten nothing without a
// trace; see the package documentation. It is for a pool that was just found absent, and
// info was asked for before that. It writes a marker when it is time for one; whoever does so first
// is as good as any other.
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

// marker reads one of the markers; one that is not there vouches for nothing.
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

// A tending is when a Store looked after the markers last.
type tending struct {
	mu   sync.Mutex
	life string
	at   time.Time
}

// due tells whether it is time to, and notes that it is done.
func (t *tending) due(life string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if life == "" || life == t.life && now.Sub(t.at) < tendEvery {
		return false
	}
	t.life, t.at = life, now
	return true
}

// tend sees to it that there is a marker of this life, so that a pool which comes later is known to
// be new. Nothing rests on it: what fails is met again by the first sync of a new pool, which tells it.
func (s line) tend(ctx context.Context, info *streamInfo) {
	if !s.tending.due(s.life(info), time.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tendFor)
	defer cancel()
	_, _ = s.remembers(ctx, info)
}

// confirm confirms a write by an identity that was read some time before it: of a pool that was taken for new, or after
// others had written first. The write may have come to another bucket, or to another leader, than the one of which
// that was known. Then the error is no passing one: the same request once more would be told its old answer. The next
// one finds another identity, and freezes the pool.
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
