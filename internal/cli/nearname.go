package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"unicode"
)

// leastNear is the length from which names are compared: shorter ones often differ by a letter.
const leastNear = 4

// hintNear says once which of the pools of the store have a name that differs from one of these by a letter: pods with a mistyped name are
// in a pool of their own, with a whole limit. A store without a list gets no hint.
func (s *access) hintNear(ctx context.Context, pools []string, out io.Writer) {
	all, err := s.pools(ctx)
	if err != nil {
		return // what was asked for has been shown
	}
	for _, name := range pools {
		for _, other := range all {
			// Of two that were asked for, the first one's hint is enough.
			if known := slices.Index(pools, other); near(name, other) && (known < 0 || known > slices.Index(pools, name)) {
				_, _ = fmt.Fprintf(out, "hint: the names of the pools %s and %s differ by one letter: each has a whole limit\n",
					printable(name), printable(other))
				return
			}
		}
	}
}

// near reports whether two names differ by one letter: one more, another one, or two that are swapped. Digits number things.
func near(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) < leastNear || len(y)-len(x) > 1 || a == b {
		return false
	}
	at := 0
	for at < len(x) && x[at] == y[at] {
		at++
	}
	if len(x) < len(y) {
		return !unicode.IsDigit(y[at]) && slices.Equal(x[at:], y[at+1:])
	}
	if unicode.IsDigit(x[at]) && unicode.IsDigit(y[at]) {
		return false
	}
	swapped := at+1 < len(x) && x[at] == y[at+1] && x[at+1] == y[at] && slices.Equal(x[at+2:], y[at+2:])
	return swapped || slices.Equal(x[at+1:], y[at+1:])
}
