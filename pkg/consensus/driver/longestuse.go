package driver

import "time"

// MaxOutlasts is longer than a share can be used without the store's consent: an hour on a
// clock that is slow by 8.33 % takes 1.18 hours on one that is as fast.
const MaxOutlasts = 75 * time.Minute
