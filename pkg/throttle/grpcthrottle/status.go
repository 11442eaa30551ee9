package grpcthrottle

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A Classifier reports whether a call's status is a refusal by the service, and which. It fills in Class and RetryAfter, and may set
// MaxBackoff. It may be called from any number of goroutines at once, and must not change its argument. [Generic] is one.
type Classifier func(s *status.Status) (r httpthrottle.Refusal, refused bool)

// Generic is the default [Classifier]: ResourceExhausted is a Wait, and Unavailable an Overload if a RetryInfo says when to come back. Without
// one, Unavailable mostly means a lost connection. ResourceExhausted for a message above a size limit is no refusal.
func Generic(s *status.Status) (r httpthrottle.Refusal, refused bool) {
	after := retryAfter(s)
	switch {
	case s.Code() == codes.ResourceExhausted && (after > 0 || !tooLong.MatchString(s.Message())):
		return httpthrottle.Refusal{Class: httpthrottle.Wait, RetryAfter: after}, true
	case s.Code() == codes.Unavailable && after > 0:
		return httpthrottle.Refusal{Class: httpthrottle.Overload, RetryAfter: after}, true
	}
	return httpthrottle.Refusal{}, false
}

// tooLong finds that a status speaks of the size of a message, as gRPC's libraries do for their own limits.
var tooLong = regexp.MustCompile(`(?i)\bmessage\b.*\b(larger than|exceeds)\b.*\bmax`)

// retryAfter returns the longest time of the RetryInfos in a status; 0: there is none.
func retryAfter(s *status.Status) (after time.Duration) {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().CheckValid() == nil {
			after = max(after, info.GetRetryDelay().AsDuration())
		}
	}
	return after
}

// served reports whether a status says that the service handled the call, and not that something failed.
func served(c codes.Code) bool {
	switch c {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated,
		codes.FailedPrecondition, codes.Aborted, codes.OutOfRange:
		return true
	case codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Unimplemented, codes.Internal,
		codes.Unavailable, codes.DataLoss:
	}
	return false
}

// A statusError is the error of a refused draw, with its status.
type statusError struct {
	error

	status *status.Status
}

// GRPCStatus is what package status looks for.
func (e *statusError) GRPCStatus() *status.Status { return e.status }

// Unwrap returns the error of the limiter or the cause of the context.
func (e *statusError) Unwrap() error { return e.error }

// withStatus returns the error of a draw as one with a gRPC status; see the package documentation.
func withStatus(ctx context.Context, err error) error {
	refused, is := errors.AsType[*throttle.Error](err)
	code := codes.ResourceExhausted
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case is && refused.Reason == throttle.ReasonClosed:
		code = codes.Unavailable
	case is && refused.Reason.Final():
		code = codes.FailedPrecondition
	case !is && ctx.Err() != nil:
		code = status.FromContextError(ctx.Err()).Code()
	case !is:
		code = status.FromContextError(err).Code()
	}
	s := status.New(code, err.Error())
	if code == codes.ResourceExhausted && refused.RetryAfter > 0 {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(refused.RetryAfter)}); err == nil {
			s = detailed
		}
	}
	return &statusError{error: err, status: s}
}

// blame is hook.Blame for the error of a call, which is none of package context.
func blame(ctx context.Context, err error) error {
	if err == nil || status.Code(err) != codes.DeadlineExceeded {
		return err
	}
	missed := fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	if blamed := hook.Blame(ctx, missed); blamed != missed { //nolint:errorlint // is it the same value?
		return withStatus(ctx, blamed)
	}
	return err
}
