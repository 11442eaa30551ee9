package throttle

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/duration"
)

// String returns the limit in a few words, such as "600 per 1m, burst 10, hard". Settings left at zero are omitted, except Per.
func (l Limit) String() string {
	if l.Max == 0 {
		return "no limit"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d per %s", l.Max, duration.Short(cmp.Or(l.Per, time.Second)))
	add := func(there bool, format string, args ...any) {
		if there {
			fmt.Fprintf(&b, ", "+format, args...)
		}
	}
	add(l.Burst != 0, "burst %d", l.Burst)
	add(l.Hard, "hard")
	add(l.Strict, "strict")
	add(l.MaxReserved != 0, "%d reserved ahead", l.MaxReserved)
	add(l.Min != 0, "from %d", l.Min)
	add(l.RampUpDuration != 0, "ramp of %s", duration.Short(l.RampUpDuration))
	add(l.Mode != nil, "%s", l.Mode)
	add(l.Adaptive, "adaptive")
	return b.String()
}
