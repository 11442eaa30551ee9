package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/duration"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A Setting is the configuration of one or several processors of a pool.
type Setting struct {
	// Max per Per is their limit, and Hard says that it must not be raised; Max 0: their limit is of another kind.
	Max  int
	Per  time.Duration
	Hard bool
	// Slots is how many calls the whole pool may have in flight at once; 0: their limit is of another kind.
	Slots int
	// Counts says that theirs, the lowest limit, is that of the whole pool, unless an override is in force. Calls in flight have no such
	// limit: each processor counts its part of its own Slots.
	Counts bool
	// Quotas is the hash of their configured quotas, of 8 hex digits; empty: they have none. Changes of the pool (SaveQuota) are not in it.
	Quotas string
	// IDs are the processors, in rising order.
	IDs []string

	digest digest // of other settings
}

// Settings returns the settings of the processors of a roster, equal ones together and the lowest limit first. More than one means that
// settings disagree. Processors that report none are left out.
func Settings(roster []driver.RosterRow) []Setting {
	notes := make([]Note, len(roster))
	for i := range roster {
		notes[i] = NoteIn(roster[i].Note)
	}
	return settingsOf(roster, notes)
}

// settingsOf is Settings with the rows' notes.
func settingsOf(roster []driver.RosterRow, notes []Note) []Setting {
	var list []Setting
	type setting struct {
		limit  reportedLimit
		sum    quotaSum
		digest digest
	}
	var known []setting // of the list
	for i := range notes {
		of := reportedLimitOf(&notes[i])
		if of == (reportedLimit{}) {
			continue
		}
		s := setting{of, quotaSumOf(roster[i].Busy), notes[i].settings}
		at := slices.IndexFunc(known, func(k setting) bool {
			return k.limit == s.limit && k.sum == s.sum && (k.digest == s.digest || k.digest == "" || s.digest == "")
		})
		switch {
		case at >= 0 && known[at].digest == "":
			known[at].digest, list[at].digest = s.digest, s.digest
		case at < 0:
			at, known = len(list), append(known, s)
			list = append(list, Setting{Max: int(of.rate.Max), Per: of.rate.Per, Hard: of.hard, Slots: of.slots, Quotas: s.sum.String(), digest: s.digest})
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

// A reportedLimit is the limit that a note reports; the zero reportedLimit: none.
type reportedLimit struct {
	rate  ceiling.Rate
	hard  bool
	slots int
}

// reportedLimitOf returns the limit of a note.
func reportedLimitOf(n *Note) reportedLimit {
	if n.limit.Max > 0 {
		return reportedLimit{rate: n.limit, hard: n.hard}
	}
	return reportedLimit{slots: n.standing.Slots}
}

func (s *Setting) rate() ceiling.Rate { return ceiling.Rate{Max: int64(s.Max), Per: s.Per} }

// sameLimit reports whether two settings have the same limit, regardless of quotas.
func (s *Setting) sameLimit(o *Setting) bool {
	return s.Max == o.Max && s.Per == o.Per && s.Hard == o.Hard && s.Slots == o.Slots
}

// compareSettings puts the lowest rate first, and rates before slots.
func compareSettings(a, b Setting) int {
	ra, rb := a.rate(), b.rate()
	switch {
	case (a.Max > 0) != (b.Max > 0):
		return cmp.Compare(b.Max, a.Max)
	case ra.Below(rb):
		return -1
	case rb.Below(ra):
		return 1
	}
	hard := map[bool]int{true: 1}
	return cmp.Or(cmp.Compare(a.Slots, b.Slots), cmp.Compare(a.Per, b.Per), cmp.Compare(hard[a.Hard], hard[b.Hard]),
		cmp.Compare(a.Quotas, b.Quotas), cmp.Compare(a.digest, b.digest))
}

// String returns the limit without its processors, such as "600 per 1m, hard".
func (s *Setting) String() string {
	switch {
	case s.Slots > 0:
		return fmt.Sprintf("%d calls in flight", s.Slots)
	case s.Hard:
		return fmt.Sprintf("%d per %s, hard", s.Max, duration.Short(s.Per))
	}
	return fmt.Sprintf("%d per %s", s.Max, duration.Short(s.Per))
}

// mostNamed is how many processors of the same settings are named.
const mostNamed = 3

// Differing names what differs between settings: limit, hard, quotas, burst, policy and others; empty: no two differ.
func Differing(settings []Setting) (names []string) {
	add := func(name string, differs bool) {
		if differs && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i := range settings {
		for k := range settings[:i] {
			a, b := &settings[i], &settings[k]
			add("limit", a.Max != b.Max || a.Per != b.Per || a.Slots != b.Slots)
			add("hard", a.Hard != b.Hard)
			add("quotas", a.Quotas != b.Quotas)
			names = a.digest.differences(b.digest, a.sameLimit(b), names)
		}
	}
	return names
}

// others names what differs beside the limit and quotas.
func others(settings []Setting) []string {
	return slices.DeleteFunc(Differing(settings), func(name string) bool { return name == "limit" || name == "hard" || name == "quotas" })
}

// Disagreement describes the settings, their processors, and which settings count; empty: no two differ. overridden says that an override
// is in force. Quotas appear as hashes, and only if they differ.
func Disagreement(settings []Setting, overridden bool) string {
	if len(settings) < 2 {
		return ""
	}
	var limits, quotas bool // they differ
	for i := range settings {
		limits = limits || !settings[i].sameLimit(&settings[0])
		quotas = quotas || settings[i].Quotas != settings[0].Quotas
	}
	var parts []string
	for i := range settings {
		s := &settings[i]
		text := s.String()
		if quotas {
			text += ", " + s.quotaText()
		}
		names := make([]string, 0, mostNamed+1)
		for _, id := range s.IDs[:min(len(s.IDs), mostNamed)] {
			names = append(names, plain(id))
		}
		if more := len(s.IDs) - mostNamed; more > 0 {
			names = append(names, fmt.Sprint(more, " more"))
		}
		text += " (" + strings.Join(names, ", ") + ")"
		if limits {
			text += s.effect(overridden)
		}
		parts = append(parts, text)
	}
	if quotas {
		parts = append(parts, "each goes by its own quotas")
	}
	if names := others(settings); len(names) > 0 {
		parts = append(parts, "each goes by its own "+strings.Join(names, ", "))
	}
	return strings.Join(parts, "; ")
}

// quotaText says which quotas they have.
func (s *Setting) quotaText() string {
	if s.Quotas == "" {
		return "no quotas"
	}
	return "quotas " + s.Quotas
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
