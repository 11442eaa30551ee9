package sharing

import (
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// defaultReceiptWait is how long Pause waits for receipts by default.
const defaultReceiptWait = 100 * time.Millisecond

// PauseSettings returns the settings that opts amount to. The error is a *limit.PauseError for the first invalid one.
func PauseSettings(opts ...limit.PauseOption) (bounds.PauseSettings, error) {
	s := bounds.PauseSettings{Wait: defaultReceiptWait}
	for _, opt := range opts {
		opt(&s)
	}
	if err := (&limit.Paused{Tag: s.Tag}).Check(time.Time{}); err != nil {
		return s, err
	}
	if s.Wait < 0 || s.Wait > time.Minute {
		return s, &limit.PauseError{Field: "wait for receipts", Value: s.Wait.String(), Allowed: "0 to 1m"}
	}
	return s, nil
}
