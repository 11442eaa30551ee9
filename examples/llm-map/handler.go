package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A handler answers each message with what the model makes of it. It draws from the
// limits itself, once for each call, and not through mapper.Wrap, which draws once for
// each message: what is repeated counts, and what is too large is not drawn at all.
type handler struct {
	settings settings
	client   *client
	prompt   *prompt
	payload  *output           // nil: results are JSON
	tag      admission.TagRule // nil: none
	// outputs learns how long answers are, when they are not bounded.
	outputs   *throttle.Estimator
	gate      gate
	abandoner admission.Abandoner
	turns     *admission.Gate // in which the messages that a limit has denied come again
	log       *slog.Logger
}

// newHandler returns the mapper of valid settings, which draws from l, and sends through
// base; nil is a transport of its own.
func newHandler(s settings, l throttle.Limiter, base http.RoundTripper, log *slog.Logger) (*handler, error) {
	p, err := newPrompt(s.System, s.Prompt)
	if err != nil {
		return nil, err
	}
	out, err := newOutput(s.Output)
	if err != nil {
		return nil, err
	}
	outputs, err := throttle.NewEstimator(s.OutputTokens, s.OutputTokens)
	if err != nil {
		return nil, err
	}
	tag, _ := admission.ParseTag(s.Tag)
	if tag != nil {
		l = forTags(l)
	}
	c, err := newClient(&s, l, base, log)
	if err != nil {
		return nil, err
	}
	return &handler{
		settings: s, client: c, prompt: p, payload: out, tag: tag, outputs: outputs,
		abandoner: admission.Abandoner{Log: log}, turns: &admission.Gate{Limiter: l, MaxWait: s.MaxWait, Log: log}, log: log,
	}, nil
}

// Map implements mapsdk.Mapper. A message whose context ends first has no answer at all,
// so that the platform delivers it again; see package mapper.
func (h *handler) Map(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	if h.tag != nil {
		ctx = withTag(ctx, h.tag(keys, d.Value, d.Headers))
	}
	messages, err := h.prompt.messages(keys, d)
	if err != nil {
		return h.reply(result{Error: &fault{Code: codeBadPrompt, Message: err.Error()}}, keys, d)
	}
	prompt := promptTokens(messages) + (h.client.template.Characters()+3)/4
	if f := h.tooLarge(prompt); f != nil {
		return h.reply(result{Error: f}, keys, d)
	}
	r, err := h.answer(ctx, messages, prompt)
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

// message is a result as the setting output says. An error stays JSON, and so does a result that the template does not fit: what
// was answered is in it, beside the error.
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

// maxTokens is how long an answer may be, in tokens; 0 when it is up to the provider.
func (h *handler) maxTokens() int {
	most := h.settings.MaxTokens
	if most == 0 {
		most = h.client.template.MaxTokens()
	}
	return most * h.client.template.Choices()
}

// output is what is drawn for an answer.
func (h *handler) output() int {
	if most := h.maxTokens(); most > 0 {
		return most
	}
	return h.outputs.Estimate()
}

// tooLarge tells what is wrong with a prompt that cannot be sent, or that the limit would
// never let through; nil for nothing.
func (h *handler) tooLarge(prompt int) *fault {
	s := &h.settings
	if most := s.MaxPromptTokens; most > 0 && prompt > most {
		return &fault{Code: codeTooLarge, Message: fmt.Sprintf("the prompt has about %d tokens, allowed: at most %d (maxPromptTokens)", prompt, most)}
	}
	output := max(h.maxTokens(), 1) // what is learnt must not decide what is an error
	if cost, most := s.Charge.tokens(prompt, output), s.TokensPerMinute; most > 0 && cost > most {
		return &fault{Code: codeTooLarge, Message: fmt.Sprintf(
			"the call would take about %d tokens (prompt %d), allowed: at most %d (tokensPerMinute)", cost, prompt, most)}
	}
	return nil
}

// answer calls the model until there is a result. An error means that there is none; *admission.Denied
// that the message is to be given back.
func (h *handler) answer(ctx context.Context, messages []chat.Message, prompt int) (result, error) {
	failures, overloads := 0, 0
	for attempts := 1; ; attempts++ {
		resp, o := h.call(ctx, messages, prompt)
		delay := o.after
		switch o.verdict {
		case answered:
			return newResult(&resp, attempts), nil
		case ended, denied:
			return result{}, o.err
		case invalid:
			return o.result(attempts), nil
		case stop:
			if h.settings.OnStop == resultOnStop {
				return o.result(attempts), nil
			}
			delay = 0 // the gate holds it back
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
func (h *handler) call(ctx context.Context, messages []chat.Message, prompt int) (resp chat.Answer, o outcome) {
	if h.settings.OnStop == holdOnStop {
		trial, err := h.gate.pass(ctx)
		if err != nil {
			return resp, outcome{verdict: ended, err: err}
		}
		defer h.gate.leave(trial) // also when something panics
	}
	if _, err := h.settings.key(); err != nil { // nothing is drawn for what cannot be sent
		return resp, h.noKey(err)
	}
	cost := h.settings.Charge.tokens(prompt, h.output())
	if most := h.settings.TokensPerMinute; most > 0 {
		cost = min(cost, most)
	}
	w, waiting, cancel := h.wait(ctx)
	defer cancel()
	resp, err := h.client.complete(waiting, cost, messages)
	if d := h.denial(w, err); d != nil {
		return resp, outcome{verdict: denied, err: d}
	}
	o = judge(ctx, err)
	switch o.verdict {
	case answered:
		if u := resp.Usage; u != nil && u.Completion > 0 {
			h.outputs.Observe(u.Completion)
		}
		h.gate.report(false)
	case stop:
		if h.gate.report(true) {
			h.log.Error("the provider refuses all calls until somebody mends it", "code", o.code, "cause", o.text, "onStop", string(h.settings.OnStop))
		}
	case wait, overload:
		h.gate.report(false)
		h.log.Warn("the provider refused a call", "class", string(o.verdict), "code", o.code, "cause", o.text)
	case invalid:
		h.gate.report(false) // it was this message's own fault
	case failed:
		h.log.Warn("a call failed", "code", o.code, "cause", o.text, "detail", o.detail)
	case ended, denied:
	}
	return resp, o
}

// noKey is what becomes of a call whose key cannot be read.
func (h *handler) noKey(err error) outcome {
	o := outcome{verdict: failed, code: "no_key", text: "the call was not sent: the file of the setting apiKeyFile holds no key", err: err}
	h.log.Warn("a call failed", "code", o.code, "cause", o.text, "detail", err.Error())
	return o
}

// result is the answer to a message whose calls will not succeed.
func (o outcome) result(attempts int) result {
	r := newResult(&o.known, attempts)
	r.Error = &fault{Code: o.code, Message: o.text}
	if o.words != "" {
		r.Error.Message += ": " + o.words
	}
	return r
}

// backoff is how long to wait after n failures: half a second, doubled each time, at most
// 30 s, and up to half as long again, so that those who failed together do not come back
// together.
func backoff(n int) time.Duration {
	d := min(500*time.Millisecond<<min(n-1, 10), 30*time.Second)
	return d + rand.N(d/2)
}

// sleep lets d pass; an error means that ctx ended before.
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
