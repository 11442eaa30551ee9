package driver

import "time"

// MaxOutlasts is longer than any use of a share without the store's consent. An hour on a clock that is 8.33 % slow takes 1.18 hours on one
// that is 8.33 % fast.
const MaxOutlasts = 75 * time.Minute
