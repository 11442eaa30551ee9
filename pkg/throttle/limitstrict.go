package throttle

import "time"

// maxReserved bounds Limit.MaxReserved.
const maxReserved = 1000

// minSpacing is the smallest distance between two slots that a store can keep.
const minSpacing = time.Microsecond

// checkStrict reports settings that Strict does not allow.
func (l Limit) checkStrict(bad func(field string, value any, allowed string)) {
	if l.MaxReserved < 0 || l.MaxReserved > maxReserved {
		bad("maxReserved", l.MaxReserved, "0 (none) to 1000")
	}
	if !l.Strict {
		return
	}
	if l.Hard {
		bad("hard", l.Hard, "false with strict")
	}
	if l.Burst > 1 {
		bad("burst", l.Burst, "0 or 1 with strict")
	}
	if l.Min != 0 {
		bad("min", l.Min, "0 with strict: what is issued one by one does not ramp up")
	}
	if l.RampUpDuration != 0 {
		bad("rampUpDuration", l.RampUpDuration, "0 with strict: what is issued one by one does not ramp up")
	}
	if l = l.withDefaults(); l.Max > 0 && l.Per < time.Duration(l.Max)*minSpacing {
		bad("max per "+l.Per.String(), l.Max, "at most 1000000 tokens per second with strict")
	}
}

// spacing returns the distance between tokens that are issued one by one: Per / Max, rounded up to the nanosecond. It is 0 for limits that
// never issue so: no limit, a hard one, or more than a million per second. It is also 0 for a burst above the default, which slots would
// not give. l has its defaults filled in.
func (l Limit) spacing() time.Duration {
	if l.Max <= 0 || l.Hard || !l.Strict && l.Burst > max(1, l.earnedIn(100*time.Millisecond)) {
		return 0
	}
	if l.Per < time.Duration(l.Max)*minSpacing {
		return 0
	}
	return (l.Per + time.Duration(l.Max) - 1) / time.Duration(l.Max)
}
