//go:build numathrottle_faults && !linux

package chaos

import (
	"testing"
)

// processors returns one, whichever it is: only Linux binds a thread.
func processors(testing.TB) []processor {
	return []processor{{name: "a processor", bind: func() {}}}
}
