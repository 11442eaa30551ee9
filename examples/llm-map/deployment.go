package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	llm "github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A deployment is a model at an endpoint, with limits of its own. There is one, or there are several in order of preference. It is safe for
// concurrent use.
type deployment struct {
	settings settings
	client   *client
	limits   *account.Limits
	limiter  throttle.Limiter // nil: no limit
	adaptive bool             // the limit follows the provider
	breaker  breaker
	// pause holds calls back that another deployment may take in the meantime; nil: the transport does.
	pause *httpthrottle.Pause
	log   *slog.Logger
}

// newDeployment returns the deployment of valid settings. It draws from limits and sends through base; nil is a transport of its own. oneOfMany
// means that there are others: its calls bring their permits.
func newDeployment(s settings, limits *account.Limits, base http.RoundTripper, log *slog.Logger, oneOfMany bool) (*deployment, error) {
	s.APIKey.Follow("apiKey", true, log)
	l := limits.Limiter()
	if s.Tag != "" {
		l = s.forTags(l)
	}
	if s.Deployment != "" {
		log = log.With("deployment", s.Deployment)
	}
	adaptive := hook.Adaptive(l)
	d := &deployment{settings: s, limits: limits, adaptive: adaptive, log: log}
	if !throttle.Unlimited(l) {
		d.limiter = l
	}
	drawn := d.limiter
	var opts []httpthrottle.Option
	if oneOfMany {
		d.pause = &httpthrottle.Pause{ToldOnly: adaptive, Max: s.MaxPause}
		opts = append(opts, httpthrottle.WithFeedback(&reported{pause: d.pause, limiter: d.limiter, most: s.MaxPause, adaptive: adaptive}))
		if drawn != nil {
			drawn = handed{drawn}
		}
	}
	var err error
	d.client, err = newClient(&s, limits, drawn, base, log, opts...)
	return d, err
}

// maxTokens returns the maximum length of an answer, in tokens; 0 if it is up to the provider.
func (d *deployment) maxTokens() int {
	most := d.settings.MaxTokens
	if most == 0 {
		most = d.client.template.MaxTokens()
	}
	return most * d.client.template.Choices()
}

// call returns what a call counts for.
func (d *deployment) call(q question) *account.Call {
	t := d.client.template
	size := llm.Size{Bytes: int64(t.Bytes()), Chars: int64(t.Characters()), Inputs: 1, Answer: int64(d.maxTokens()), Model: d.settings.Model}
	add := func(text string) {
		size.Bytes += int64(len(text))
		size.Chars += int64(utf8.RuneCountInString(text))
	}
	for i := range q.messages {
		add(q.messages[i].Content)
	}
	for _, text := range q.texts {
		add(text)
	}
	if len(q.texts) > 0 {
		size.Inputs, size.Answer, size.Silent = int64(len(q.texts)), 0, true
	}
	return &account.Call{Size: size, Model: d.settings.Model}
}

// tooLarge returns the fault of a call that cannot be made, or that a limit would never grant; nil for none.
func (d *deployment) tooLarge(q question) *fault {
	c := d.call(q)
	estimate := d.limits.Prompt(c)
	if most := d.settings.MaxPromptTokens; most > 0 && estimate > most {
		return &fault{Code: codeTooLarge, Message: fmt.Sprintf("the prompt has about %d tokens, allowed: at most %d (maxPromptTokens)", estimate, most)}
	}
	if setting, tokens, most := d.limits.TooLarge(c); setting != "" {
		return &fault{Code: codeTooLarge, Message: fmt.Sprintf(
			"the call would take about %d tokens (prompt %d), allowed: at most %d (%s)", tokens, estimate, most, setting)}
	}
	return nil
}

// noKey returns the outcome of a call whose key cannot be read.
func (d *deployment) noKey(err error) outcome {
	setting := d.settings.APIKey.Key("apiKey")
	if d.settings.APIKeyEnv != "" {
		setting = "apiKeyEnv"
	}
	o := outcome{verdict: failed, code: "no_key", text: "the call was not sent: the setting " + setting + " gives no key that can be sent", err: err}
	d.log.Warn("a call failed", "code", o.code, "cause", o.text, "detail", err.Error())
	return o
}

// judge is judge. With a limit that follows the provider the message itself waits for a short time, or an unknown one: nobody is held back
// then; see httpthrottle.Pause.ToldOnly.
func (d *deployment) judge(ctx context.Context, err error) outcome {
	o := judge(ctx, err)
	if r, refused := errors.AsType[*httpthrottle.RefusedError](err); refused && o.verdict == wait && d.adaptive && r.Refusal.RetryAfter <= brief {
		o.verdict, o.after = overload, r.Refusal.RetryAfter
	}
	return o
}

// note takes the outcome of a call, and logs its errors.
func (d *deployment) note(o *outcome) {
	switch o.verdict {
	case answered:
		d.breaker.report(false, 0)
	case stop:
		if d.breaker.report(true, o.after) {
			d.log.Error("the provider refuses all calls until somebody mends it", "code", o.code, "cause", o.text, "onStop", string(d.settings.OnStop))
		}
	case wait, overload:
		d.breaker.report(false, 0)
		d.log.Warn("the provider refused a call", "class", string(o.verdict), "code", o.code, "cause", o.text)
	case invalid:
		d.breaker.report(false, 0) // only this message is at fault
	case failed:
		d.log.Warn("a call failed", "code", o.code, "cause", o.text, "detail", o.detail)
	case ended, denied:
	}
}

// A handed limiter grants each call the permit in its context.
type handed struct{ throttle.Limiter }

type permitKey struct{}

// withPermit returns a context whose call has a permit.
func withPermit(ctx context.Context, p throttle.Permit) context.Context {
	return context.WithValue(ctx, permitKey{}, p)
}

// Acquire implements throttle.Limiter. Without a permit it draws one: every call has one.
func (l handed) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	if p, ok := ctx.Value(permitKey{}).(throttle.Permit); ok {
		return p, nil
	}
	return l.Limiter.Acquire(ctx, n)
}

// Unwrap exposes the limiter to package throttle.
func (l handed) Unwrap() throttle.Limiter { return l.Limiter }

// A told receives the refusals from the transport of one deployment of many. It is not an httpthrottle.Pauser: a call with a permit goes at
// once, and while calls are held back, others may be sent elsewhere.
type reported struct {
	pause    *httpthrottle.Pause
	limiter  throttle.Limiter
	most     time.Duration
	adaptive bool
}

// brief is the longest pause that is skipped for a limit that follows the service.
const brief = 2 * time.Second

// Refused implements httpthrottle.Feedback. It informs the pool, as the transport does by itself.
func (t *reported) Refused(ctx context.Context, r httpthrottle.Refusal) {
	t.pause.Refused(ctx, r)
	if r.Class != httpthrottle.Wait || r.RetryAfter <= 0 || t.adaptive && r.RetryAfter <= brief {
		return
	}
	if l, ok := t.limiter.(interface {
		RetryAfter(until time.Time, reason string)
	}); ok {
		l.RetryAfter(r.At.Add(min(r.RetryAfter, t.most)), (&httpthrottle.RefusedError{Refusal: r}).Error())
	}
}

// Accepted implements httpthrottle.Feedback.
func (t *reported) Accepted(ctx context.Context, a httpthrottle.Acceptance) { t.pause.Accepted(ctx, a) }
