package protocol

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// The records of these tests: they stand at t0, on both clocks of a server that has kept its identity.
const t0 = int64(1_800_000_000_000_000)

const (
	half = driver.Whole / 2
	// remembers is At.Remembers of a store that knows new pools as such.
	remembers = time.Duration(math.MaxInt64)
	// maxSlept is the longest silence that a record keeps.
	maxSlept = time.Microsecond << 52
)

// after is a moment of the server.
func after(d time.Duration) driver.At {
	return driver.At{Now: t0 + d.Microseconds(), Identity: "server", Longest: driver.MaxLease}
}

// recorded is the document of that name on record, with version 0 if there is none.
func recorded(r *driver.Record, name string) driver.Document {
	return (&pooldoc.Doc[string]{Name: name}).In(r.Documents)
}
