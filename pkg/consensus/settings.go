package consensus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
)

// A Setting is what one or several processors of a pool are configured with.
type Setting struct {
	// Max per Per is their limit, and Hard says that it must not be raised; Max 0: their limit is another one.
	Max  int
	Per  time.Duration
	Hard bool
	// Slots is how many calls the whole pool may have in flight at once; 0: their limit is another one.
	Slots int
	// Counts says that theirs is the limit of the whole pool, unless an override is in force: the lowest one. Calls in
	// flight have no such limit, for each processor counts its part of its own Slots.
	Counts bool
	// IDs are the processors, in rising order.
	IDs []string
}

// Settings returns what the processors of a roster are configured with: those of the same settings together, the
// lowest limit first. More than one says that settings disagree. Processors that tell none are left out.
func Settings(roster []RosterRow) []Setting {
	var list []Setting
	for i := range roster {
		s, ok := settingOf(roster[i].Note)
		if !ok {
			continue
		}
		at := slices.IndexFunc(list, func(o Setting) bool { return o.is(&s) })
		if at < 0 {
			at, list = len(list), append(list, s)
		}
		list[at].IDs = append(list[at].IDs, roster[i].ID)
	}
	slices.SortFunc(list, compareSettings)
	for i := range list {
		slices.Sort(list[i].IDs)
		list[i].Counts = list[i].Max > 0 && !list[0].rate().Below(list[i].rate())
	}
	return list
}

// settingOf reads the settings of one note.
func settingOf(text string) (s Setting, ok bool) {
	if n, ok := parseNote(text); ok {
		return Setting{Max: int(n.limit.Max), Per: n.limit.Per, Hard: n.hard}, true
	}
	s.Slots = standingOf(text).Slots
	return s, s.Slots > 0
}

func (s *Setting) rate() ceiling.Rate { return ceiling.Rate{Max: int64(s.Max), Per: s.Per} }

// is tells whether two settings are the same, whoever has them.
func (s *Setting) is(o *Setting) bool {
	return s.Max == o.Max && s.Per == o.Per && s.Hard == o.Hard && s.Slots == o.Slots
}

// compareSettings puts the lowest rate first, and rates before slots.
func compareSettings(a, b Setting) int {
	ra, rb := a.rate(), b.rate()
	switch {
	case (a.Max > 0) != (b.Max > 0):
		return cmp.Compare(b.Max, a.Max)
	case a.Max > 0 && ra.Below(rb):
		return -1
	case a.Max > 0 && rb.Below(ra):
		return 1
	}
	hard := map[bool]int{true: 1}
	return cmp.Or(cmp.Compare(a.Slots, b.Slots), cmp.Compare(a.Per, b.Per), cmp.Compare(hard[a.Hard], hard[b.Hard]))
}

// String returns the settings without who has them, such as "600 per 1m0s, hard".
func (s *Setting) String() string {
	switch {
	case s.Slots > 0:
		return fmt.Sprintf("%d calls in flight", s.Slots)
	case s.Hard:
		return fmt.Sprintf("%d per %s, hard", s.Max, s.Per)
	}
	return fmt.Sprintf("%d per %s", s.Max, s.Per)
}

// mostNamed is how many processors of the same settings are named.
const mostNamed = 3

// Disagreement says in words which settings there are, who has them, and which of them count; empty: there are no
// two that differ. overridden says that an override is in force.
func Disagreement(settings []Setting, overridden bool) string {
	if len(settings) < 2 {
		return ""
	}
	var parts []string
	for i := range settings {
		s := &settings[i]
		names := make([]string, 0, mostNamed+1)
		for _, id := range s.IDs[:min(len(s.IDs), mostNamed)] {
			names = append(names, plain(id))
		}
		if more := len(s.IDs) - mostNamed; more > 0 {
			names = append(names, fmt.Sprint(more, " more"))
		}
		parts = append(parts, s.String()+" ("+strings.Join(names, ", ")+")"+s.effect(overridden))
	}
	return strings.Join(parts, "; ")
}

// effect says whether a setting counts.
func (s *Setting) effect(overridden bool) string {
	switch {
	case s.Max == 0:
		return " counts for their part"
	case overridden && s.Hard:
		return " caps the override for these"
	case overridden || !s.Counts:
		return ""
	}
	return " counts"
}

// plain is a name as it can be printed anywhere.
func plain(name string) string {
	if quoted := fmt.Sprintf("%q", name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}
