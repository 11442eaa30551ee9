//go:build numathrottle_faults

package chaos

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// processors returns those that this process may run on.
func processors(t testing.TB) []processor {
	t.Helper()
	var usable unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &usable))
	var all []processor
	for n := range len(usable) * 64 {
		if !usable.IsSet(n) {
			continue
		}
		var one unix.CPUSet
		one.Set(n)
		all = append(all, processor{
			name: fmt.Sprintf("processor %d", n),
			bind: func() { _ = unix.SchedSetaffinity(0, &one) }, // who is not bound watches any
		})
	}
	require.NotEmpty(t, all)
	return all
}
