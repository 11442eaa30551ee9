package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	openai "github.com/sashabaranov/go-openai"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A handler answers each message with what the model makes of it. It draws from the
// limits itself, once for each call, and not through mapper.Wrap, which draws once for
// each message: what is repeated counts, and what is too large is not drawn at all.
type handler struct {
	settings settings
	client   *openai.Client
	prompt   *prompt
	// outputs learns how long answers are, when they are not bounded.
	outputs   *throttle.Estimator
	gate      gate
	abandoner admission.Abandoner
	lines     map[string]*admission.Gate // by the name of a limit; see limits.lines
	log       *slog.Logger
}

// newHandler returns the mapper of valid settings, which draws from l, and sends through
// base; nil is a transport of its own.
func newHandler(s settings, l throttle.Limiter, base http.RoundTripper, log *slog.Logger) (*handler, error) {
	p, err := newPrompt(s.System, s.Prompt)
	if err != nil {
		return nil, err
	}
	outputs, err := throttle.NewEstimator(s.OutputTokens, s.OutputTokens)
	if err != nil {
		return nil, err
	}
	return &handler{
		settings: s, client: newClient(&s, l, base), prompt: p, outputs: outputs,
		abandoner: admission.Abandoner{Log: log}, log: log,
	}, nil
}

// Map implements mapsdk.Mapper. A message whose context ends first has no answer at all,
// so that the platform delivers it again; see package mapper.
func (h *handler) Map(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	messages, err := h.prompt.messages(keys, d)
	if err != nil {
		return result{Error: &fault{Code: codeBadPrompt, Message: err.Error()}}.message(keys)
	}
	prompt := promptTokens(messages)
	if f := h.tooLarge(prompt); f != nil {
		return result{Error: f}.message(keys)
	}
	r, err := h.answer(ctx, h.request(messages), prompt)
	if denied, ok := errors.AsType[*admission.Denied](err); ok {
		return nack(denied)
	}
	if err != nil {
		h.abandoner.Abandon(ctx, err)
	}
	return r.message(keys)
}

// output is what is drawn for an answer.
func (h *handler) output() int {
	if h.settings.MaxTokens > 0 {
		return h.settings.MaxTokens
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
	output := s.MaxTokens
	if output == 0 {
		output = 1 // what is learnt must not decide what is an error
	}
	if cost, most := s.Charge.tokens(prompt, output), s.TokensPerMinute; most > 0 && cost > most {
		return &fault{Code: codeTooLarge, Message: fmt.Sprintf(
			"the call would take about %d tokens (prompt %d), allowed: at most %d (tokensPerMinute)", cost, prompt, most)}
	}
	return nil
}

func (h *handler) request(messages []openai.ChatCompletionMessage) openai.ChatCompletionRequest {
	s := &h.settings
	req := openai.ChatCompletionRequest{Model: s.Model, Messages: messages}
	if s.Provider == openAI || isReasoning(s.Model) {
		req.MaxCompletionTokens = s.MaxTokens // max_tokens is deprecated there
	} else {
		req.MaxTokens = s.MaxTokens //nolint:staticcheck // deprecated by OpenAI; others know nothing else
	}
	if t, _ := s.temperature(); t != nil {
		req.Temperature = max(*t, math.SmallestNonzeroFloat32) // 0 would be left out
	}
	return req
}

// isReasoning tells models that refuse max_tokens wherever they run.
func isReasoning(model string) bool {
	for _, family := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, family) {
			return true
		}
	}
	return false
}

// answer calls the model until there is a result. An error means that there is none; *admission.Denied
// that the message is to be given back.
func (h *handler) answer(ctx context.Context, req openai.ChatCompletionRequest, prompt int) (result, error) {
	failures, overloads := 0, 0
	for attempts := 1; ; attempts++ {
		resp, o := h.call(ctx, req, prompt)
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
func (h *handler) call(ctx context.Context, req openai.ChatCompletionRequest, prompt int) (resp openai.ChatCompletionResponse, o outcome) {
	if h.settings.OnStop == holdOnStop {
		trial, err := h.gate.pass(ctx)
		if err != nil {
			return resp, outcome{verdict: ended, err: err}
		}
		defer h.gate.leave(trial) // also when something panics
	}
	cost := h.settings.Charge.tokens(prompt, h.output())
	if most := h.settings.TokensPerMinute; most > 0 {
		cost = min(cost, most)
	}
	w, waiting, cancel := h.wait(ctx)
	defer cancel()
	resp, err := h.client.CreateChatCompletion(withCost(waiting, cost), req)
	if d := h.denial(w, err); d != nil {
		return resp, outcome{verdict: denied, err: d}
	}
	if err == nil && len(resp.Choices) == 0 {
		return resp, outcome{verdict: failed, code: "no_choices", text: "the answer of the endpoint has no choices"}
	}
	o = judge(ctx, err)
	switch o.verdict {
	case answered:
		if resp.Usage.CompletionTokens > 0 {
			h.outputs.Observe(resp.Usage.CompletionTokens)
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

// result is the answer to a message whose calls will not succeed.
func (o outcome) result(attempts int) result {
	return result{Attempts: attempts, Error: &fault{Code: o.code, Message: o.text}}
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
