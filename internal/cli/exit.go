package cli

import (
	"errors"
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/drivers"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The exit codes of the command.
const (
	// ExitFailed is for all other errors.
	ExitFailed = 1
	// ExitUsage is for a wrong command, flag or argument, and for wrong settings.
	ExitUsage = 2
	// ExitNotFound is for a pool without a record in the store.
	ExitNotFound = 3
	// ExitRefused is for a change that the pool does not allow, such as a limit above a hard one.
	ExitRefused = 4
	// ExitStore is for a store that cannot be reached or does not answer in time. A retry may work later.
	ExitStore = 5
)

// ExitCode returns the exit code for an error of Run; 0 for nil. If it wraps several errors, the most important one counts: an unreachable
// store, then a missing pool.
func ExitCode(err error) int {
	var away *storeError
	var fault *config.FieldError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &away):
		return ExitStore
	case errors.Is(err, driver.ErrNoPool):
		return ExitNotFound
	case refuses(err):
		return ExitRefused
	case errors.Is(err, errUsage), errors.As(err, &fault):
		return ExitUsage
	}
	return ExitFailed
}

// refuses reports whether a pool does not allow the request.
func refuses(err error) bool {
	var request *driver.RequestError
	var pause *throttle.PauseError
	var conflict *driver.ConflictError
	var empty *operate.EmptyPoolError
	return errors.As(err, &empty) || errors.As(err, &request) || errors.As(err, &pause) || errors.As(err, &conflict)
}

// errUsage is a kind of errors; see kindError.
var errUsage = errors.New("wrong usage")

// A kindError is an error with a kind that its text does not show.
type kindError struct {
	error

	kind error
}

func (e *kindError) Unwrap() []error { return []error{e.error, e.kind} }

// wrongArguments returns an error of wrong usage.
func wrongArguments(format string, args ...any) error {
	return &kindError{fmt.Errorf(format, args...), errUsage}
}

// A storeError is an error of a store that could not answer.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// ofOpening marks the error of a store that could not be opened, unless a wrong setting is the cause.
func ofOpening(err error) error {
	if _, setting := errors.AsType[*config.FieldError](err); setting {
		return err
	}
	return ofStore(err)
}

// ofStore marks the error of a call to a store, unless the store answered with it.
func ofStore(err error) error {
	unable := errors.Is(err, driver.ErrNoTagBuckets) || errors.Is(err, driver.ErrNoList) || // a retry does not help either
		errors.Is(err, driver.ErrWrongAnswer) || errors.Is(err, pooldoc.ErrUnreadable)
	if err == nil || unable || errors.Is(err, driver.ErrNoPool) || errors.Is(err, errUsage) || refuses(err) {
		return err
	}
	if said, ok := errors.AsType[*drivers.RemedyError](err); ok {
		err = said // the remedy comes first
	}
	return &storeError{err}
}
