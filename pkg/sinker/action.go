package sinker

import (
	"context"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An Action sets what happens to a message whose tokens did not come in time; see [OnDenied]. The zero Action is Wait.
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

// Wait keeps waiting: the wait ends with the tokens or with the context. It may not be combined with [WithMaxWait] or [WithBatchBudget], which
// would have no meaning.
func Wait() Action { return Action{} }

// Nack returns the message to the source or buffer that it came from, to be delivered again when it is its turn. The first nacked message
// comes back once its tokens are due, after at least 100 ms. Each further one comes later by the time that its own tokens take in this
// pod's share of the limit. A little jitter is added. The number of nacks is logged once a minute.
//
// It needs Numaflow 1.8.2 or later. An older version does not know the response and takes it for a success: the message is lost. In a
// pipeline the inter-step buffer honours the delay. In a MonoVertex that depends on the source; Kafka, plain NATS and the generator lose
// the message. The package documentation has the table.
func Nack() Action {
	return newAction("Nack", func(d sinksdk.Datum, denied *admission.Denied) sinksdk.Response {
		return sinksdk.ResponseNack(d.ID(), denied.NackOptions(denied.Why()))
	})
}

// Fallback sends the message to the fallback sink. The vertex must have one: without it the platform fails the batch and ends the pod. A
// fallback sink and an on-success sink must not answer so, and Check refuses it there.
func Fallback() Action {
	return newAction(actionFallback, func(d sinksdk.Datum, _ *admission.Denied) sinksdk.Response {
		return sinksdk.ResponseFallback(d.ID())
	})
}

// Fail answers with a failure. The platform offers the failed messages of a batch to the sink again, by default 1 ms later and without end.
// The rest of the batch waits for them meanwhile. So Fail is useful with a retryStrategy that sets the backoff and the final step.
func Fail() Action {
	return newAction("Fail", func(d sinksdk.Datum, denied *admission.Denied) sinksdk.Response {
		return sinksdk.ResponseFailure(d.ID(), denied.Why())
	})
}

// Drop acknowledges the message as if the sink had stored it. The message is lost by intent, and its sender does not learn of it. The
// number of dropped messages is logged.
func Drop() Action {
	return newAction(actionDrop, func(d sinksdk.Datum, _ *admission.Denied) sinksdk.Response { return sinksdk.ResponseOK(d.ID()) })
}

const (
	actionFallback = "Fallback"
	actionDrop     = "Drop"
)

// DenyFunc answers with the result of deny; its ID is set to that of the message. The argument why names the limit that refused, and when
// tokens are expected (RetryAfter, 0 when not known). Many goroutines may call deny at once. When deny panics, the stream fails as if the
// handler had. In a fallback or an on-success sink it must not return ResponseFallback, which the platform takes for a failure of the batch
// there.
func DenyFunc(deny func(d sinksdk.Datum, why *throttle.Error) sinksdk.Response) Action {
	return newAction("DenyFunc", func(d sinksdk.Datum, denied *admission.Denied) sinksdk.Response {
		r := deny(d, denied.Err)
		r.ID = d.ID()
		return r
	}, admission.DenyFuncFaults(deny == nil)...)
}
