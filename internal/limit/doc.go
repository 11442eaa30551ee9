// Package limit holds the words that a limiter and its pool both speak: shares and
// leases, reasons, pauses, permit slots and usage. It imports nothing of this project,
// so that the token engine and the protocol need not know each other.
package limit

import "math"

// Never is a time, in nanoseconds, that no clock reaches.
const Never = math.MaxInt64
