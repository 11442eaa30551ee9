package sinker

import (
	"context"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Action says what becomes of a message whose tokens did not come in time; see
// OnDenied. The zero Action is Wait.
type Action struct{ does action }

type action = admission.Action[sinksdk.Datum, sinksdk.Response]

func newAction(name string, respond func(d sinksdk.Datum, denied *admission.Denied) sinksdk.Response, faults ...string) Action {
	answer := func(_ context.Context, _ []string, d sinksdk.Datum, denied *admission.Denied) sinksdk.Response {
		return respond(d, denied)
	}
	return Action{action{Name: name, Answer: answer, Faults: faults}}
}

// String returns the name of the Action.
func (a Action) String() string { return a.does.String() }

// Wait goes on waiting: the wait ends with the tokens or with the context. It
// takes no WithMaxWait and no WithBatchBudget, which would have no meaning.
func Wait() Action { return Action{} }

// Nack gives the message back to the source or buffer that it came from, to be
// delivered again when it is its turn: the first after the time that its tokens take,
// at least 100 ms, and each further one as much later as its own tokens take in this
// pod's share of the limit, with a little jitter on top. It is logged once a minute how
// many there were.
//
// It needs Numaflow 1.8.2 or later. An older version does not know the response
// and takes it for a success: the message is lost. In a pipeline the inter-step
// buffer honours the delay; in a MonoVertex the source does what it can, and
// Kafka, plain NATS and the generator lose the message. The package documentation
// has the table.
func Nack() Action {
	return newAction("Nack", func(d sinksdk.Datum, denied *admission.Denied) sinksdk.Response {
		return sinksdk.ResponseNack(d.ID(), denied.NackOptions(denied.Why()))
	})
}

// Fallback sends the message to the fallback sink. The vertex must have one:
// without it the platform fails the batch and ends the pod. A fallback sink and an
// on-success sink must not answer so, and Check refuses it there.
func Fallback() Action {
	return newAction(actionFallback, func(d sinksdk.Datum, _ *admission.Denied) sinksdk.Response {
		return sinksdk.ResponseFallback(d.ID())
	})
}

// Fail answers with a failure. The platform offers the failed messages of a batch
// to the sink again, by default 1 ms later and without an end in sight, while the
// rest of the batch waits for them; so it is of use with a retryStrategy that says
// how long to back off and what to do in the end.
func Fail() Action {
	return newAction("Fail", func(d sinksdk.Datum, denied *admission.Denied) sinksdk.Response {
		return sinksdk.ResponseFailure(d.ID(), denied.Why())
	})
}

// Drop acknowledges the message as if the sink had stored it. The message is lost
// by intent, and nothing tells its sender. How many were dropped is logged.
func Drop() Action {
	return newAction(actionDrop, func(d sinksdk.Datum, _ *admission.Denied) sinksdk.Response { return sinksdk.ResponseOK(d.ID()) })
}

const (
	actionFallback = "Fallback"
	actionDrop     = "Drop"
)

// DenyFunc answers with what deny returns; its ID is set to that of the message.
// why says which limit refused, and when tokens are expected (RetryAfter, 0 when
// that is not known). deny may be called from many goroutines at once; when it
// panics, the stream fails as if the handler had. In a fallback or an on-success sink it
// must not return ResponseFallback, which the platform takes for a failure of the batch there.
func DenyFunc(deny func(d sinksdk.Datum, why *throttle.Error) sinksdk.Response) Action {
	return newAction("DenyFunc", func(d sinksdk.Datum, denied *admission.Denied) sinksdk.Response {
		r := deny(d, denied.Err)
		r.ID = d.ID()
		return r
	}, admission.DenyFuncFaults(deny == nil)...)
}
