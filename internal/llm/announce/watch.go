package announce

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
)

// A Watch compares what a service announces for one account with what is configured. The zero Watch is ready. It is safe for concurrent use.
type Watch struct {
	mu  sync.Mutex
	off map[subject]bool // the limits whose last figure was a reason for a warning
}

// A subject is what a figure is about.
type subject struct {
	kind Kind
	per  time.Duration
}

// Note returns a warning if f is less than what is configured for the limit of that name, amount (up to 1e12) in per (whole seconds), or more
// than twice as much. Different periods are compared by their rates. It warns once for each Kind and Per until a figure for it was fine, and
// never where the period is unknown or the amount is 0: not configured.
func (w *Watch) Note(name string, f Figure, amount int64, per time.Duration) string {
	// In whole seconds both products, and twice one of them, are exact.
	announced, configured := f.Limit*seconds(per), amount*seconds(f.Per)
	if announced <= 0 || configured <= 0 {
		return ""
	}
	verdict := ""
	switch {
	case announced < configured:
		verdict = "less than"
	case announced > 2*configured:
		verdict = "more than twice"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := subject{f.Kind, f.Per}
	warned := w.off[s]
	if w.off == nil {
		w.off = map[subject]bool{}
	}
	w.off[s] = verdict != ""
	if verdict == "" || warned {
		return ""
	}
	return fmt.Sprintf("limit %s: the service announces %d %s per %s, %s the configured %d per %s",
		name, f.Limit, words[f.Kind], period(f.Per), verdict, amount, period(per))
}

// words are what limits count, in words.
var words = map[Kind]string{Requests: "requests", Input: "input tokens", Output: "output tokens", Tokens: "tokens"}

// seconds returns d in whole seconds, at most a month.
func seconds(d time.Duration) int64 { return int64(min(d, farthestReset) / time.Second) }

// periods are those that have a word.
var periods = map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour", day: "day"}

// period writes a period as people do.
func period(d time.Duration) string { return cmp.Or(periods[d], duration.Short(d)) }
