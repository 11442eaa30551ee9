package httpthrottle

import (
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// farthest is the longest delay that is distinguished from longer ones: about ten years.
const farthest = 10 * 365 * 24 * time.Hour

// longestValue is how long a text may be that says when to come back, in bytes.
const longestValue = 1024

// A clock has the time of a service, and the age of its answer.
type clock struct {
	now time.Time
	age time.Duration // an answer from a cache was made so long ago
}

// believedSkew is how far the clock of a service may be from the local one. Further off it is not the clock that is wrong but the Date: a
// constant, or local time that claims to be GMT.
const believedSkew = 15 * time.Minute

// clock returns the time of the service by Date and Age of the answer, or the local time where these are missing or cannot be believed.
func (a Answer) clock() clock {
	c := clock{now: a.At}
	if seconds, err := strconv.ParseUint(strings.TrimSpace(a.Header.Get("Age")), 10, 31); err == nil {
		c.age = time.Duration(seconds) * time.Second
	}
	if made, ok := date(strings.TrimSpace(a.Header.Get("Date"))); ok {
		if now := made.Add(c.age); now.Sub(a.At).Abs() <= believedSkew {
			c.now = now
		}
	}
	return c
}

// until returns the time from now to a time: 0 to farthest.
func (c clock) until(t time.Time) time.Duration { return min(max(t.Sub(c.now), 0), farthest) }

// rest returns the rest of a delay that began when the answer was made.
func (c clock) rest(d time.Duration) time.Duration { return min(max(d-c.age, 0), farthest) }

// when reads when to come back. A plain number counts units; it is a time since 1970 where it is too
// large for a delay.
func (c clock) when(s string, unit time.Duration) (time.Duration, bool) {
	s = unquote(strings.TrimSpace(s))
	if s == "" || len(s) > longestValue {
		return 0, false
	}
	if n, ok := decimal(s); ok {
		return c.number(n, unit), true
	}
	if unit != time.Second {
		return 0, false // a field that names its unit says nothing but a number
	}
	if t, ok := date(s); ok {
		return c.until(t), true
	}
	if d, ok := duration(s); ok {
		return c.rest(d), true
	}
	return 0, false
}

// unquote takes away quotes around a text.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return strings.TrimSpace(s[1 : len(s)-1])
	}
	return s
}

// epochs are the units of times since 1970, with the number from which each one counts. The first is 2001 in seconds: nobody waits for
// thirty years, nor for eleven days given in milliseconds. The others begin in 1973, and end where a number of the one before would mean
// the year 5138.
var epochs = [...]struct {
	from *big.Rat
	unit time.Duration
}{
	{power(9), time.Second},
	{power(11), time.Millisecond},
	{power(14), time.Microsecond},
	{power(17), time.Nanosecond},
}

func power(n int64) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil))
}

// number reads a number of units, or a time since 1970.
func (c clock) number(n *big.Rat, unit time.Duration) time.Duration {
	since := time.Duration(0)
	for _, e := range epochs {
		if n.Cmp(e.from) >= 0 {
			since = e.unit
		}
	}
	if since == 0 {
		return c.rest(span(n, unit))
	}
	ns := nanoseconds(n, since)
	if !ns.IsInt64() {
		return farthest
	}
	return c.until(time.Unix(0, ns.Int64()))
}

// nanoseconds returns n units, rounded up: nobody is to come back early.
func nanoseconds(n *big.Rat, unit time.Duration) *big.Int {
	exact := new(big.Rat).Mul(n, new(big.Rat).SetInt64(int64(unit)))
	whole, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole
}

// span returns n units, farthest at most.
func span(n *big.Rat, unit time.Duration) time.Duration {
	ns := nanoseconds(n, unit)
	if !ns.IsInt64() {
		return farthest
	}
	return min(time.Duration(ns.Int64()), farthest)
}

// decimal reads digits with or without a fraction: no sign, no exponent.
func decimal(s string) (*big.Rat, bool) {
	if strings.Trim(s, "0123456789.") != "" || strings.Count(s, ".") > 1 || strings.Trim(s, ".") == "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// dates are the forms of a date besides those of HTTP, without a day of the week. A date without a zone is in UTC. A fraction of the seconds
// is read in each.
var dates = dateForms()

func dateForms() (forms []string) {
	for _, clock := range [...]string{"15:04:05", "15:04"} {
		for _, zone := range [...]string{"Z07:00", "-0700", ""} {
			forms = append(forms, "2006-01-02T"+clock+zone, "2006-01-02 "+clock+zone)
		}
		forms = append(forms, "2006-01-02 "+clock+" -0700")
		for _, day := range [...]string{
			"2 Jan 2006 ", "2 January 2006 ", "2 Jan 06 ", "2 January 06 ", "2-Jan-2006 ", "2-January-2006 ", "2-Jan-06 ", "2-January-06 ",
		} {
			forms = append(forms, day+clock+" -0700")
		}
	}
	return forms
}

// weekday finds the day of the week before a date.
var weekday = regexp.MustCompile(`(?i)^(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?, *`)

// utc finds a word for UTC behind a date.
var utc = regexp.MustCompile(`(?i) (?:gmt|utc?|z)$`)

func date(s string) (time.Time, bool) {
	if t, err := http.ParseTime(s); err == nil {
		return t, true
	}
	s = strings.ToUpper(utc.ReplaceAllString(weekday.ReplaceAllString(s, ""), " +0000")) // names are read in any case, but T and Z are not
	for _, form := range dates {
		if t, err := time.Parse(form, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// iso8601 finds the parts of a duration such as PT1M30.5S.
var iso8601 = regexp.MustCompile(`^P(?:([\d.]+)D)?(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?$`)

// duration reads 6m0s, 1.5s, 20 seconds or PT20S.
func duration(s string) (time.Duration, bool) {
	if parts := iso8601.FindStringSubmatch(s); parts != nil {
		var sum time.Duration
		found := false
		for i, unit := range [...]time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
			if n, ok := decimal(parts[i+1]); ok {
				sum, found = min(sum+span(n, unit), farthest), true
			}
		}
		return sum, found
	}
	d, end := amounts(s)
	return d, end > 0 && end == len(s)
}

// units are the words for units of time, in lower case.
var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}

// amount finds a number with a unit, and what may stand before the next one.
var amount = regexp.MustCompile(`^(\d+(?:\.\d+)?|\.\d+) ?([a-zA-Zµμ]+)`)

var between = regexp.MustCompile(`^(?:, and | and |,? )`)

// amounts reads numbers with units at the beginning of a text, as many as there are, and returns
// where they end; 0: there are none.
func amounts(s string) (sum time.Duration, end int) {
	for at := 0; ; {
		found := amount.FindStringSubmatchIndex(s[at:])
		if found == nil {
			return sum, end
		}
		n, ok := decimal(s[at+found[2] : at+found[3]])
		unit := units[strings.ToLower(s[at+found[4]:at+found[5]])]
		if !ok || unit == 0 {
			return sum, end
		}
		sum = min(sum+span(n, unit), farthest)
		at += found[1]
		end = at
		at += len(between.FindString(s[at:]))
	}
}

// list reads a value that may be a list, such as two lines that a proxy has joined: the latest counts. A list with anything malformed in it
// says nothing.
func (c clock) list(s string, unit time.Duration) (latest time.Duration, ok bool) {
	if d, whole := c.when(s, unit); whole {
		return d, true
	}
	if len(s) > longestValue || !strings.Contains(s, ",") {
		return 0, false
	}
	items := strings.Split(s, ",")
	for i := 0; i < len(items); i++ {
		d, valid := c.when(items[i], unit)
		if !valid && i+1 < len(items) { // a date has a comma of its own
			i++
			d, valid = c.when(items[i-1]+","+items[i], unit)
		}
		if !valid {
			return 0, false
		}
		latest = max(latest, d)
	}
	return latest, true
}

// advice finds, in a text for people, where it says when to come back.
var advice = regexp.MustCompile(`(?i)\b(?:(?:try(?: your request)? again|retry(?: again| your request)?) (?:in|after)|` +
	`please wait(?: for)?|expected available in|(?:rate )?limits? (?:will )?resets? in)[: ] ?(?:about |approximately |~ ?)?`)

const (
	// longestText is how much of a text for people is looked at, in bytes.
	longestText = 4096
	// longestAmount is how far behind a number with its unit the next one may end.
	longestAmount = 32
	// mostAdvice is how many times it may say so.
	mostAdvice = 8
)

// inText returns when a text for people says to come back, and with what words; of several the latest.
func (c clock) inText(text string) (latest time.Duration, words string, ok bool) {
	whole := len(text) <= longestText
	text = text[:min(len(text), longestText)]
	for _, at := range advice.FindAllStringIndex(text, mostAdvice) {
		d, end := amounts(text[at[1]:])
		cut := !whole && at[1]+end > longestText-longestAmount // the time may go on
		if end == 0 || cut || ok && d <= latest {
			continue
		}
		latest, words, ok = d, text[at[0]:at[1]+end], true
	}
	return c.rest(latest), words, ok
}
