package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/callmeter"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
)

// A handler answers each message with the model's answer. It draws from the limits itself, once for each call. mapper.Wrap would draw once
// for each message; here retries count, and too large prompts draw nothing.
type handler struct {
	settings settings
	// deployments are in order of preference; there is at least one.
	deployments []*deployment
	prompt      *prompt
	payload     *output           // nil: results are JSON
	tag         admission.TagRule // nil: none
	abandoner   admission.Abandoner
	turns       *admission.Admitter // in which denied messages come again
	meters      callmeter.Meters    // of all deployments
	log         *slog.Logger
}

// A question is what one call asks the model: an answer to a prompt, or a vector for each of some texts.
type question struct {
	messages []chat.Message
	texts    []string
}

// A target is the settings of a deployment, and the limits that it draws from.
type target struct {
	settings settings
	limits   *account.Limits
}

// newHandler returns the mapper of valid settings, for deployments in order of preference. It sends through base; nil is a transport of its own.
func newHandler(s settings, targets []target, base http.RoundTripper, log *slog.Logger) (*handler, error) {
	p, err := newPrompt(s.System, s.Prompt)
	if err != nil {
		return nil, err
	}
	out, err := newOutput(s.Output)
	if err != nil {
		return nil, err
	}
	tag, _ := taglevel.Messages(s.Tag)
	h := &handler{
		settings: s, prompt: p, payload: out, tag: tag, abandoner: admission.Abandoner{Log: log}, log: log,
		turns: &admission.Admitter{Limiter: targets[0].limits.Limiter(), MaxWait: s.MaxWait, Log: log},
	}
	for _, t := range targets {
		d, err := newDeployment(t.settings, t.limits, base, log, len(targets) > 1)
		if err != nil {
			return nil, err
		}
		h.deployments = append(h.deployments, d)
		h.meters = append(h.meters, d.client.meters...)
	}
	if tag != nil {
		h.turns.Limiter = s.forTags(targets[0].limits.Limiter())
	}
	return h, nil
}

// Map implements mapsdk.Mapper. A message whose context ends first has no answer, so that the platform redelivers it; see package mapper.
func (h *handler) Map(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	h.meters.Open()
	defer h.meters.Close()
	if h.tag != nil {
		ctx = withTag(ctx, h.tag(keys, d.Value, d.Headers))
	}
	messages, err := h.prompt.messages(keys, d)
	if err != nil {
		return h.reply(result{Error: &fault{Code: codeBadPrompt, Message: err.Error()}}, keys, d)
	}
	r, err := h.answer(ctx, question{messages: messages})
	if denied, ok := errors.AsType[*admission.Denied](err); ok {
		return nack(denied)
	}
	if err != nil {
		h.abandoner.Abandon(ctx, err)
	}
	return h.reply(r, keys, d)
}

// reply is the answer to a message.
func (h *handler) reply(r result, keys []string, d mapsdk.Datum) mapsdk.Messages {
	m := h.message(r.withInput(h.settings.Input, d.Value()), keys, d)
	if h.settings.Input == inputMetadata {
		m = m.WithUserMetadata(metadata(d))
	}
	return mapsdk.MessagesBuilder().Append(m)
}

// message formats a result according to the setting output. An error stays JSON. A result that does not fit the template stays JSON, too,
// with the answer beside the error.
func (h *handler) message(r result, keys []string, d mapsdk.Datum) mapsdk.Message {
	if h.payload == nil || r.Error != nil {
		return r.message(keys)
	}
	payload, err := h.payload.render(keys, d, r)
	if err != nil {
		r.Error = &fault{Code: codeBadOutput, Message: err.Error()}
		return r.message(keys)
	}
	return mapsdk.NewMessage(payload).WithKeys(keys)
}

// answer calls the model until there is a result. An error means that there is none; with *admission.Denied the message must be nacked.
func (h *handler) answer(ctx context.Context, q question) (result, error) {
	if len(h.deployments) > 1 {
		return h.answerAnywhere(ctx, q)
	}
	d := h.deployments[0]
	if f := d.tooLarge(q); f != nil {
		return tooLargeOutcome(f).result(0), nil
	}
	failures, overloads := 0, 0
	for attempts := 1; ; attempts++ {
		resp, o := h.call(ctx, d, q)
		delay := o.after
		switch o.verdict {
		case answered:
			return newResult(&resp, attempts), nil
		case ended, denied:
			return result{}, o.err
		case invalid:
			return o.result(attempts), nil
		case stop:
			if errors.Is(o.err, account.ErrBudget) {
				return o.result(attempts - 1), nil // the last one was not sent
			}
			if h.settings.OnStop == resultOnStop {
				return o.result(attempts), nil
			}
			delay = 0 // the breaker holds it back
		case failed:
			failures++
			if failures >= h.settings.MaxAttempts {
				h.log.Warn("message answered with an error", "code", o.code, "failures", failures)
				return o.result(attempts), nil
			}
			delay = backoff(failures)
		case overload:
			overloads++
			delay = max(delay, backoff(overloads))
			if err := h.impatient(delay); err != nil {
				return result{}, err
			}
		case wait:
		}
		if err := sleep(ctx, delay); err != nil {
			return result{}, err
		}
	}
}

// call makes one call, when it may be made.
func (h *handler) call(ctx context.Context, d *deployment, q question) (resp chat.Answer, o outcome) {
	if h.settings.OnStop == holdOnStop {
		trial, err := d.breaker.pass(ctx)
		if err != nil {
			return resp, outcome{verdict: ended, err: err}
		}
		defer d.breaker.leave(trial) // also when something panics
	}
	if _, err := d.settings.APIKey.ReadHeader(); err != nil { // a call that cannot be sent draws nothing
		return resp, d.noKey(err)
	}
	w, waiting, cancel := h.wait(ctx)
	defer cancel()
	resp, err := d.client.complete(waiting, d.call(q), q)
	if denial := h.denial(w, err); denial != nil {
		return resp, outcome{verdict: denied, err: denial}
	}
	if errors.Is(err, account.ErrBudget) {
		return resp, spentOutcome()
	}
	o = d.judge(ctx, err)
	d.note(&o)
	return resp, o
}

// result returns the answer to a message whose calls will not succeed.
func (o outcome) result(attempts int) result {
	r := newResult(&o.known, attempts)
	r.refused = o.verdict == invalid
	r.Error = &fault{Code: o.code, Message: o.text}
	if o.words != "" {
		r.Error.Message += ": " + o.words
	}
	return r
}

// backoff returns the wait after n failures: half a second, doubled each time, at most 30 s, and up to half as long again. So calls that
// failed together do not retry together.
func backoff(n int) time.Duration {
	d := min(500*time.Millisecond<<min(n-1, 10), 30*time.Second)
	return d + rand.N(d/2)
}

// sleep waits for d; an error means that ctx ended before.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
