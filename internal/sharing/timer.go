package sharing

import (
	"errors"
	"time"
)

// A Timer is the result of a clock's AfterFunc; *time.Timer is one.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// ErrClosed says that the limiter was closed: it grants nothing more.
var ErrClosed = errors.New("limiter closed")
