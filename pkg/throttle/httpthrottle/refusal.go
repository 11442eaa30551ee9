package httpthrottle

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Class says how a caller should react to a refusal.
type Class string

// The classes of refusals.
const (
	// Wait: a limit of the caller is used up. The same call can pass later.
	Wait Class = "wait"
	// Overload: the service has too much to do, for any caller. The same call can pass later, and fewer calls should be made.
	Overload Class = "overload"
	// Stop: no wait helps that a call could make. A quota or a budget is spent, for long, or was never there.
	Stop Class = "stop"
)

// ReasonRefused is the reason of a *throttle.Error for a call that the service
// refused; see RefusalsAsErrors.
const ReasonRefused throttle.Reason = "refused"

// A Refusal describes a call that the service did not serve. A Classifier fills in the first six fields, the transport the others.
type Refusal struct {
	// Class is the class of the refusal.
	Class Class
	// RetryAfter is how long the service asks to wait, counted from At; 0 when it does
	// not say. It can be years. Of a Stop it's the time to its end.
	RetryAfter time.Duration
	// NotProcessed means that the service has not acted on the call, so that it may be repeated with any method.
	NotProcessed bool
	// Dimension names the limit that is used up, in the service's words, such as
	// "requests" or "input-tokens"; empty when it does not say.
	Dimension string
	// Code is the service's own code for the refusal, such as "insufficient_quota"; empty
	// for none. It is letters, digits and "_.-", at most 64 of them.
	Code string

	// MaxBackoff is the longest backoff where RetryAfter is 0; at 30 s or less it is 30 s.
	MaxBackoff time.Duration

	// Status is the HTTP status.
	Status int
	// Sent is when the attempt was handed to the base transport, At when its answer came; both local, with the monotonic clock. A refusal
	// of an attempt from before the reaction to an earlier refusal says nothing new.
	Sent, At time.Time
	// Tag is the tag for which the attempt drew tokens, and Cost their number.
	Tag  string
	Cost int
	// Attempt counts the attempts of the call, from 1.
	Attempt int
}

// outcome returns the report of the refusal to an adaptive limit. Stop does not concern it: fewer calls would be refused as well.
func (r Refusal) outcome() (o throttle.Outcome, ok bool) {
	switch r.Class {
	case Wait:
		return throttle.OutcomeRefused, true
	case Overload:
		return throttle.OutcomeOverloaded, true
	case Stop:
	}
	return 0, false
}

// reason returns the text of a pause that the refusal asks for.
func (r Refusal) reason() string {
	text := "the service answered with status " + strconv.Itoa(r.Status)
	if r.Code != "" {
		text += ", code " + r.Code
	}
	return text
}

// Until returns when the service will accept the call again; the zero Time when it does not say.
func (r Refusal) Until() time.Time {
	if r.RetryAfter == 0 {
		return time.Time{}
	}
	return r.At.Add(r.RetryAfter)
}

// An Acceptance says that the service served a call: anything that is neither a
// refusal nor a status of 500 and above.
type Acceptance struct {
	// Status is the HTTP status.
	Status int
	// Sent is when the attempt was handed to the base transport, At when the head of
	// its answer came; as in Refusal.
	Sent, At time.Time
	// Tag is the tag for which the attempt drew tokens, and Cost their number.
	Tag  string
	Cost int
}

// An Answer is a response as a Classifier sees it.
type Answer struct {
	// Status and Header are those of the response.
	Status int
	Header http.Header
	// Body is the beginning of the body, as it came, for a status of 400 and above: the part that came within a second, 1 MiB at most.
	// Otherwise it is nil, as it is while only the head is judged.
	Body []byte
	// At is when the answer came, by the local clock.
	At time.Time

	longest time.Duration // the classifiers for LLMs take a longer wait for a Stop; 0 is an hour. The transport has its maxPause
}

// A Classifier reports whether an answer is a refusal, and its class. For an answer with a body and a status of 400 and above it is called
// twice. The first call is without the body, and holds back other calls while that is read. The second call is with the body, and counts.
// It may be called from any number of goroutines at once, and must not change its argument. OpenAI, Azure, Anthropic, Gemini and Generic
// are classifiers; a classifier for another service can start from theirs.
type Classifier func(a Answer) (r Refusal, refused bool)

// A RefusedError is the cause of the errors that [RefusalsAsErrors] makes.
type RefusedError struct{ Refusal Refusal }

// Error names status, class, code and limit. It holds nothing of the request and
// nothing else of the answer.
func (e *RefusedError) Error() string {
	r := e.Refusal
	text := fmt.Sprintf("the service refused with status %d (%s)", r.Status, r.Class)
	if r.Code != "" {
		text += ", code " + r.Code
	}
	if r.Dimension != "" {
		text += ", limit on " + r.Dimension
	}
	return text
}

// refusalError returns the error for a refusal that nothing more is done about.
func (c *call) refusalError(r Refusal) error {
	cause := &RefusedError{Refusal: r}
	if r.Class == Stop {
		return fmt.Errorf("httpthrottle: %w", cause)
	}
	return hook.Refuse(c.source(), throttle.Error{
		Reason: ReasonRefused, Tag: r.Tag, Cost: r.Cost, RetryAfter: r.RetryAfter, Cause: cause,
	})
}
