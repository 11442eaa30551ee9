package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// give answers a message.
func (a *answer) give(r sinksdk.Response) { a.response, a.given = r, true }

// answer answers a message according to the result of its request; again is as in act.
func (b *batch) answer(a *answer, res result, err error, again comeback) {
	switch {
	case errors.Is(err, throttle.ErrClosed):
		b.abandoner.Hold(b.ctx, err) // messages that come while the process ends belong to the next one
		return
	case b.ctx.Err() != nil:
		return // responses answers for it: nothing may be acknowledged because of that
	case tooLarge(err):
		b.invalid(a, errTooLarge)
		return
	case errors.Is(err, errInvalidURL):
		b.invalid(a, err)
		return
	case err != nil:
		b.act(a, b.settings.OnUnavailable, unavailability(res, err), again)
		return
	}
	switch res.class {
	case classOK:
		b.stored(a, res)
	case classRetry, classWait, classEach:
		b.act(a, b.settings.OnUnavailable, unavailability(res, nil), again)
	case classDrop:
		b.act(a, dropAction, statusText(res.status), soon)
	case classFallback:
		b.act(a, fallbackAction, statusText(res.status), soon)
	case classFail:
		b.act(a, failAction, statusText(res.status), soon)
	}
}

// stored answers a message that the service has stored.
func (b *batch) stored(a *answer, res result) {
	if b.settings.OnOK != onSuccess {
		a.give(sinksdk.ResponseOK(a.id))
		b.count(string(ackOnOK))
		return
	}
	if !res.complete {
		b.log.Warn("an answer is longer than maxResponse, or broke off: the on-success sink gets its beginning")
	}
	a.give(sinksdk.ResponseOnSuccess(a.id, sinksdk.NewMessage(res.body)))
	b.count(string(onSuccess))
}

// invalid answers a message that cannot be sent.
func (b *batch) invalid(a *answer, err error) {
	b.act(a, b.settings.OnInvalid, err.Error(), soon)
}

// A comeback returns when a nacked message comes again, and whether that is already logged.
type comeback func() (after time.Duration, reported bool)

// act answers a message that was not stored. again returns when it comes again if it is a nack.
func (b *batch) act(a *answer, do action, why string, again comeback) {
	reported := false
	switch do {
	case failAction:
		a.give(sinksdk.ResponseFailure(a.id, why))
	case nackAction:
		after, logged := again()
		reported = logged
		delay := uint64(after.Milliseconds())
		a.give(sinksdk.ResponseNack(a.id, &sinksdk.NackOptions{Delay: &delay, Reason: &why}))
	case fallbackAction:
		a.give(sinksdk.ResponseFallback(a.id))
	case dropAction:
		a.give(sinksdk.ResponseOK(a.id))
	}
	b.count(string(do))
	if reported {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.notStored == nil {
		b.notStored = map[cause]int{}
	}
	b.notStored[cause{do, why}]++
}

// A cause is the reason why a message was not stored, and its answer.
type cause struct {
	do  action
	why string
}

// report logs the messages that were not stored, a line for each cause.
func (b *batch) report() {
	for c, n := range b.notStored {
		b.log.Warn("messages were not stored", "messages", n, "answer", string(c.do), "cause", c.why)
	}
}

func (b *batch) count(answer string) {
	b.meters.messages.Add(b.ctx, 1, metric.WithAttributes(attribute.String("answer", answer)))
}

const leastDelay, mostDelay = 100 * time.Millisecond, time.Hour // of a nack

// comesAgain returns when the nacked messages of one request come again, together. Messages denied by the limit get turns at its pace.
// Others come when it makes sense, and up to a quarter later, so that not all come together.
func (b *batch) comesAgain(messages int, res result, err error) (after time.Duration, reported bool) {
	if e, ok := errors.AsType[*throttle.Error](err); ok {
		return min((&admission.Denied{Err: e, By: b.turns, Messages: messages}).RetryAfter(), mostDelay), true
	}
	return spread(min(max(retryAfter(res, err), leastDelay), mostDelay)), false
}

// soon returns when a message comes again if its answer does not say.
func soon() (after time.Duration, reported bool) { return spread(leastDelay), false }

func spread(d time.Duration) time.Duration { return d + rand.N(d/4) }

func statusText(status int) string { return "status " + strconv.Itoa(status) }

// responses returns one response for each message, once a batch with failures has lasted for failDelay. Unanswered messages, whose context
// has ended, are failures.
func (b *batch) responses() sinksdk.Responses {
	out := make(sinksdk.Responses, len(b.answers))
	failed := false
	b.report()
	for i, a := range b.answers {
		if !a.given {
			why := "not sent"
			if err := context.Cause(b.ctx); err != nil {
				why += ": " + err.Error()
			}
			a.give(sinksdk.ResponseFailure(a.id, why))
		}
		r := a.response
		failed = failed || !r.Success && !r.OnSuccess && !r.Nack && !r.Fallback
		out[i] = r
	}
	if failed {
		b.pause(b.settings.FailDelay)
	}
	return out
}

// pause waits for d, or until the context ends.
func (b *batch) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.ctx.Done():
	}
}
