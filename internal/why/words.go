package why

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

// plain quotes a name unless it can be printed anywhere.
func plain(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// argument quotes a name for a shell, if necessary.
func argument(name string) string {
	safe := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/-_.:@%+,=", c)
	}
	if name != "" && !strings.ContainsFunc(name, func(c rune) bool { return !safe(c) }) {
		return name
	}
	return "'" + strings.ReplaceAll(strings.Trim(strconv.Quote(name), `"`), "'", `'\''`) + "'"
}

const allOthers = "all other tags"

// tagName names the tag of a pod: by the pattern of its quota if only a hash of it is known.
func (p *Pod) tagName() string {
	switch {
	case p.Tag == "": // it was not reported
		return "a tag"
	case p.Tag == protocol.TagOthers:
		return allOthers
	case p.Pattern != "":
		return "a tag of " + plain(p.Pattern)
	case strings.HasPrefix(p.Tag, "#"):
		return "tag " + plain(p.Tag)
	}
	return plain(p.Tag)
}

// subject names the tags of a group as the subject of a sentence; many: there are several.
func (g *group) subject() (text string, many bool) {
	n := max(len(g.tags), g.hold.Tags)
	switch {
	case n == 1:
		return g.tags[0], false
	case n > mostNamed || n > len(g.tags):
		return fmt.Sprintf("%d tags, such as %s,", n, g.tags[0]), true
	}
	return list(g.tags), true
}

// spent returns the names of tags with the ends of their spent budgets, which differ.
func (g *group) spent(now time.Time) (names []string) {
	for i, name := range g.tags {
		if g.left[i] > 0 {
			name += " (" + until(now.Add(g.left[i]), now)[1:] + ")"
		}
		names = append(names, name)
	}
	return names
}

// list lists names.
func list(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// clock formats a moment, without the date if it is on the day of now.
func clock(at, now time.Time) string {
	at, now = at.UTC().Round(time.Second), now.UTC()
	layout := "15:04"
	if at.Second() != 0 {
		layout = "15:04:05"
	}
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		layout = time.DateOnly + " " + layout
	}
	return at.Format(layout) + " UTC"
}

// until says when something ends; empty without an end.
func until(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " until " + clock(at, now)
}

// by names the author.
func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + plain(who)
}

// span formats a duration for people: 3.2 s, 45 s, 12 min, 3.5 h.
func span(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	case s < 90:
		return fmt.Sprintf("%.0f s", s)
	case s < 5400:
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.1f h", s/3600)
}

// whole formats a duration in whole seconds, rounded up.
func whole(d time.Duration) string {
	if d > 90*time.Second {
		return span(d)
	}
	return fmt.Sprintf("%d s", int64((d+time.Second-1)/time.Second))
}

// rate formats a rate in tokens per second.
func rate(perSecond float64) string { return strconv.FormatFloat(perSecond, 'g', 4, 64) + "/s" }

func percent(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

// waits says how many callers wait.
func waits(callers int, longest time.Duration) string {
	switch {
	case callers == 0:
		return ""
	case callers == 1 && longest > 0:
		return "; 1 caller waits, for " + span(longest)
	case callers == 1:
		return "; 1 caller waits"
	case longest > 0:
		return fmt.Sprintf("; %d callers wait, the longest for %s", callers, span(longest))
	}
	return fmt.Sprintf("; %d callers wait", callers)
}

// mostNamed is how many pods or tags a sentence names.
const mostNamed = 3

// silence says which pods are silent, for how long, and what that costs; empty: none is.
func (s *State) silence() string {
	n := len(s.Silent)
	if n == 0 {
		return ""
	}
	var ids []string
	var share float64
	var longest, left time.Duration
	for _, p := range s.Silent {
		ids, longest = append(ids, plain(p.ID)), max(longest, p.For)
		if share += p.Share; p.Share > 0 {
			left = max(left, p.Left)
		}
	}
	has, their, upTo, fate := "has", "its share", "", "it hangs, was killed"
	if n > 1 {
		has, their, upTo, fate = "have", "their shares", "up to ", "they hang, were killed"
	}
	who := fmt.Sprintf("%d of %d pods", n, n+len(s.Pods))
	switch {
	case len(s.Pods) == 0 && n == 1:
		who = ids[0] + ", the only pod,"
	case len(s.Pods) == 0:
		who = fmt.Sprintf("all %d pods", n)
	case n == 1:
		who = ids[0]
	case n <= mostNamed:
		who = list(ids)
	}
	text := fmt.Sprintf("%s %s been silent for %s%s", who, has, upTo, span(longest))
	switch {
	case len(s.Pods) == 0: // without syncs the store removes nobody
		return text + ": " + fate + ", or cannot reach the store"
	case percent(share) == percent(0):
		return text
	}
	// One that is cut off uses its share until its lease ends.
	return fmt.Sprintf("%s; %s of %s may be unused for %s%s more", text, their, percent(share), upTo, whole(left))
}

// waitsOf says how many of the waiting callers wait for the cause of a group.
func (s *State) waitsOf(g *group) string {
	all, n := s.waiting(), g.hold.Callers
	if n <= 0 || n >= all {
		return waits(min(n, all), g.hold.Longest)
	}
	text, verb := "", "wait"
	if n == 1 {
		verb = "waits"
	}
	if g.hold.Longest > 0 {
		text = ", the longest for " + span(g.hold.Longest)
	}
	return fmt.Sprintf("; %d of %d callers %s for it%s", n, all, verb, text)
}

// pods names some of the pods of a group.
func pods(ids []string, all int) string {
	if len(ids) == 1 {
		return plain(ids[0])
	}
	return fmt.Sprintf("%d of %d pods", len(ids), all)
}

// mostStoreText bounds the shown text of a store's error.
const mostStoreText = 200

// remedied matches the part of an error that states its remedy, without the cause.
var remedied = regexp.MustCompile(`the store (rejects|wants|asks|does not|lacks)\b[^()]*(\(NUMATHROTTLE_[^()]*\))?`)

// A remedy is an error of a store that states its remedy.
type remedy interface {
	error
	Remedy() string
}

// FailureOf returns the text to show for an error of a store: its remedy, else its text. Empty for nil.
func FailureOf(err error) (failure, does string) {
	if err == nil {
		return "", ""
	}
	if r, ok := errors.AsType[remedy](err); ok {
		does = r.Remedy()
	}
	return err.Error(), does
}

// StoreText derives a diagnosis and a remedy from the text of a store's error.
func StoreText(failure string) string {
	lower := strings.ToLower(failure)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(lower, p) {
				return true
			}
		}
		return false
	}
	if said := remedied.FindString(failure); said != "" { // the text says it already
		return cut(said)
	}
	switch {
	case strings.Contains(failure, "NUMATHROTTLE_STORE"):
		return "the store cannot be reached: " + cut(failure)
	case has("wrongpass", "invalid password", "invalid username-password"):
		return "the store rejects the password (NUMATHROTTLE_STORE_PASSWORD)"
	case has("noauth"):
		return "the store asks for a password (NUMATHROTTLE_STORE_PASSWORD)"
	case has("authorization violation", "authentication"):
		return "the store rejects the login (NUMATHROTTLE_STORE_USERNAME and NUMATHROTTLE_STORE_PASSWORD, or NUMATHROTTLE_STORE_TOKEN)"
	case has("noperm"):
		return "the store's user lacks a permission: " + cut(failure)
	case has("deadline exceeded", "i/o timeout"):
		return "the store does not answer in time (NUMATHROTTLE_STORE)"
	}
	return "the store cannot be reached: " + cut(failure) + " (NUMATHROTTLE_STORE)"
}

func cut(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > mostStoreText {
		text = strings.ToValidUTF8(text[:mostStoreText], "") + "..."
	}
	return plain(text)
}
