package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Reasons beside those of package throttle.
const (
	BadRequest   = "bad_request"
	Unauthorized = "unauthorized"
	Forbidden    = "forbidden"
	TooLong      = "too_long"
	TooLate      = "too_late"
	NotOpen      = "not_open"
	TooMany      = "too_many"
	Upstream     = "upstream"
	Internal     = "internal"
	NotFound     = "not_found"
	NotAllowed   = "method_not_allowed"
	MediaType    = "media_type"
)

// An Error is a response that says why a call was not served. No field contains a secret.
type Error struct {
	// Status is the HTTP status; it is not part of the body.
	Status int `json:"-"`
	// Reason is one of the reasons above or a throttle.Reason.
	Reason string `json:"reason"`
	// Message is for people.
	Message string `json:"message"`
	// FieldError is the wrong field of a bad request; empty elsewhere.
	Field string `json:"field,omitempty"`
	// Limit and Tag name the limit or quota that holds the call back; empty if unknown.
	Limit string `json:"limit,omitempty"`
	Tag   string `json:"tag,omitempty"`
	// Tokens is the number of requested tokens.
	Tokens int `json:"tokens,omitempty"`
	// RetryAfterSeconds is when to try again, in seconds; 0 if unknown.
	RetryAfterSeconds float64 `json:"retry_after_seconds,omitempty"`
}

// NewError returns an error without details.
func NewError(status int, reason, message string) *Error {
	return &Error{Status: status, Reason: reason, Message: message}
}

// FieldError returns the error for a field of a request with a value that is not allowed.
func FieldError(field, value, allowed string) *Error {
	return &Error{
		Status: http.StatusBadRequest, Reason: BadRequest, Field: field,
		Message: field + " is " + value + ", allowed: " + allowed,
	}
}

// LateError returns the error for a request that did not arrive in time. Its connection is no longer usable, which Write signals.
func LateError(what string) *Error {
	return NewError(http.StatusRequestTimeout, TooLate, what+" of the request did not arrive in time")
}

// GoneError returns the error for a request whose client ended the connection, or its side of it, before the answer.
func GoneError() *Error {
	return NewError(http.StatusRequestTimeout, TooLate,
		"the connection ended on the client's side before the answer, allowed: open until the answer has come")
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrorOf returns the response for an error of a limiter. An error of another kind becomes an internal one, whose text is not shown.
func ErrorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	denied, ok := errors.AsType[*throttle.Error](err)
	switch {
	case ok:
		return denial(denied)
	case errors.Is(err, throttle.ErrClosed):
		return NewError(http.StatusServiceUnavailable, string(throttle.ReasonClosed), "the limiter is closed")
	case errors.Is(err, context.Canceled):
		return GoneError()
	case errors.Is(err, context.DeadlineExceeded):
		return NewError(http.StatusTooManyRequests, string(throttle.ReasonLimit), "the time for waiting is over")
	}
	return NewError(http.StatusInternalServerError, Internal, "the call failed within the proxy; its log says why")
}

func denial(d *throttle.Error) *Error {
	e := &Error{
		Status: http.StatusTooManyRequests, Reason: string(d.Reason), Message: d.Error(),
		Limit: d.Limit, Tag: d.Tag, Tokens: d.Cost, RetryAfterSeconds: d.RetryAfter.Seconds(),
	}
	switch d.Reason {
	case throttle.ReasonClosed:
		e.Status = http.StatusServiceUnavailable
	case throttle.ReasonTooLarge:
		e.Status = http.StatusUnprocessableEntity // no wait helps
	default:
	}
	return e
}

// Write sends the error.
func (e *Error) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if e.Status == http.StatusRequestTimeout {
		h.Set("Connection", "close")
	}
	if e.RetryAfterSeconds > 0 {
		h.Set("Retry-After", RetryAfter(time.Duration(e.RetryAfterSeconds*float64(time.Second))))
	}
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(struct { //nolint:errchkjson // the wait is a finite number, and whoever is gone cannot be told
		Error *Error `json:"error"`
	}{e})
}

// RetryAfter formats a duration for the header: whole seconds, rounded up.
func RetryAfter(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}
