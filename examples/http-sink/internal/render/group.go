package render

import "time"

// Bounds determine when a group is complete.
type Bounds struct {
	// Messages and Bytes are the maximum of a group. A record that is larger by itself goes alone.
	Messages, Bytes int
	// Age is how long the first message of a group waits for others; 0: as long as more may come.
	Age time.Duration
}

// A Group is messages with the same target in one request: the caller's items, and their records.
type Group[K comparable, I any] struct {
	Key     K
	Items   []I
	Records [][]byte
	Bytes   int
	Since   time.Time // when the first came
}

// Halves returns the two halves of a group of two or more.
func (g Group[K, I]) Halves() (a, b Group[K, I]) {
	half := len(g.Items) / 2
	a, b = g, g
	a.Items, b.Items = g.Items[:half], g.Items[half:]
	a.Records, b.Records = g.Records[:half], g.Records[half:]
	return a, b
}

// Groups collects messages. It has no clock: the times are the caller's.
type Groups[K comparable, I any] struct {
	bounds          Bounds
	frame, overhead int
	order           []K
	open            map[K]*Group[K, I]
}

// NewGroups returns groups within bounds, in a layout.
func NewGroups[K comparable, I any](b Bounds, l Layout) *Groups[K, I] {
	if l.Format == Single {
		b.Messages = 1
	}
	return &Groups[K, I]{bounds: b, frame: l.frame(), overhead: l.overhead(), open: map[K]*Group[K, I]{}}
}

// Add puts a message into the group of its key, and returns the groups that became complete.
func (g *Groups[K, I]) Add(key K, item I, record []byte, now time.Time) []Group[K, I] {
	var done []Group[K, I]
	size := len(record) + g.overhead
	if at := g.open[key]; at != nil && at.Bytes+size > g.bounds.Bytes {
		done = append(done, g.take(key))
	}
	at := g.open[key]
	if at == nil {
		at = &Group[K, I]{Key: key, Since: now, Bytes: g.frame}
		g.open[key] = at
		g.order = append(g.order, key)
	}
	at.Items, at.Records, at.Bytes = append(at.Items, item), append(at.Records, record), at.Bytes+size
	if len(at.Items) >= g.bounds.Messages || at.Bytes >= g.bounds.Bytes {
		done = append(done, g.take(key))
	}
	return done
}

// Due returns the groups that have waited long enough, the oldest first.
func (g *Groups[K, I]) Due(now time.Time) []Group[K, I] {
	var done []Group[K, I]
	for g.bounds.Age > 0 && len(g.order) > 0 && now.Sub(g.open[g.order[0]].Since) >= g.bounds.Age {
		done = append(done, g.take(g.order[0]))
	}
	return done
}

// Next returns the time until a group is due; ok is false if none ever is.
func (g *Groups[K, I]) Next(now time.Time) (d time.Duration, ok bool) {
	if g.bounds.Age <= 0 || len(g.order) == 0 {
		return 0, false
	}
	return max(g.open[g.order[0]].Since.Add(g.bounds.Age).Sub(now), 0), true
}

// Rest returns the remaining groups, the oldest first.
func (g *Groups[K, I]) Rest() []Group[K, I] {
	var done []Group[K, I]
	for len(g.order) > 0 {
		done = append(done, g.take(g.order[0]))
	}
	return done
}

// take removes a group. order has the keys by age.
func (g *Groups[K, I]) take(key K) Group[K, I] {
	group := *g.open[key]
	delete(g.open, key)
	for i, k := range g.order {
		if k == key {
			g.order = append(g.order[:i], g.order[i+1:]...)
			break
		}
	}
	return group
}
