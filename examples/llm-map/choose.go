package main

import (
	"context"
	"errors"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// This file sends a message to the first of several deployments that can take it. Each call has a permit of its deployment.
//
// A message tries them in order of preference. It skips those held back by a refusal, or without tokens within spillAfter. If it has
// skipped all, it waits for all of them at once, and takes the first permit; other grants are returned.

// A search is one message on its way to an answer. Only the message's goroutine changes it.
type search struct {
	question

	// later is when the message may go to a deployment again, and row counts its consecutive failures there.
	later map[*deployment]time.Time
	row   map[*deployment]int
	// lost is why the message will never get an answer from a deployment.
	lost map[*deployment]outcome
}

// A pick is a deployment with a permit of its limits. Unused ones must be released.
type pick struct {
	*deployment

	call   *account.Call // with the permit's draw
	permit throttle.Permit
	trial  bool // it tries whether a breaker can be closed
}

func (p pick) release() {
	p.permit.Cancel()
	p.breaker.leave(p.trial)
}

// errPassedBy: a deployment cannot take the message now.
var errPassedBy = errors.New("the deployment has no permit now")

// errLost: no deployment will ever take the message.
var errLost = errors.New("no deployment can take the message")

// answerAnywhere is answer for several deployments.
func (h *handler) answerAnywhere(ctx context.Context, q question) (result, error) {
	s := &search{question: q, later: map[*deployment]time.Time{}, row: map[*deployment]int{}, lost: map[*deployment]outcome{}}
	for _, d := range h.deployments {
		if f := d.tooLarge(q); f != nil {
			s.lost[d] = tooLargeOutcome(f)
		}
	}
	failures := 0
	for attempts := 1; ; attempts++ {
		d, resp, o := h.callAnywhere(ctx, s)
		switch o.verdict {
		case answered:
			r := newResult(&resp, attempts)
			r.Deployment = d.settings.Deployment
			return r, nil
		case ended, denied:
			if errors.Is(o.err, errLost) {
				return h.lost(s, attempts-1), nil
			}
			return result{}, o.err
		case invalid:
			if !o.tooLarge {
				return o.resultOf(d, attempts), nil
			}
			s.lost[d] = o
		case stop:
			if errors.Is(o.err, account.ErrBudget) {
				return o.resultOf(d, attempts-1), nil
			}
			if h.settings.OnStop == resultOnStop {
				s.lost[d] = o
			} // else the breaker holds it back
		case failed:
			failures++
			if failures >= h.settings.MaxAttempts {
				h.log.Warn("message answered with an error", "code", o.code, "failures", failures)
				return o.resultOf(d, attempts), nil
			}
			s.notBefore(d, 0)
		case overload, wait:
			if d == nil { // no deployment was called
				if err := sleep(ctx, o.after); err != nil {
					return result{}, err
				}
				continue
			}
			s.notBefore(d, o.after)
		}
	}
}

// notBefore keeps the message from a deployment for a while: at least for a backoff, and for as long as the deployment says.
func (s *search) notBefore(d *deployment, after time.Duration) {
	s.row[d]++
	s.later[d] = time.Now().Add(max(after, backoff(s.row[d])))
}

// tooLarge reports whether a limit will never grant the draw.
func tooLarge(err error) bool {
	e, ok := errors.AsType[*throttle.Error](err)
	return ok && e.Reason == throttle.ReasonTooLarge
}

// lost returns the answer to a message that no deployment takes, with the first one's reason.
func (h *handler) lost(s *search, attempts int) result {
	for _, d := range h.deployments {
		if o, ok := s.lost[d]; ok {
			return o.resultOf(d, attempts)
		}
	}
	return result{Error: &fault{Code: "internal", Message: errLost.Error()}}
}

// resultOf is result with the name of the deployment.
func (o outcome) resultOf(d *deployment, attempts int) result {
	r := o.result(attempts)
	r.Deployment = d.settings.Deployment
	return r
}

// callAnywhere makes one call, to the deployment that can take it first; d is nil if no call can be made now.
func (h *handler) callAnywhere(ctx context.Context, s *search) (d *deployment, resp chat.Answer, o outcome) {
	w, waiting, cancel := h.wait(ctx)
	defer cancel()
	p, err := h.choose(waiting, s)
	if denial := h.denial(w, err); denial != nil {
		return nil, resp, outcome{verdict: denied, err: denial}
	}
	_, throttled := errors.AsType[*throttle.Error](err)
	switch {
	case errors.Is(err, account.ErrBudget):
		return h.deployments[0], resp, spentOutcome()
	case tooLarge(err):
		return h.deployments[0], resp, judge(ctx, err)
	case throttled:
		return nil, resp, judge(ctx, err)
	case err != nil:
		return nil, resp, outcome{verdict: ended, err: err}
	}
	defer p.release() // usage is settled already
	if _, err := p.settings.APIKey.ReadHeader(); err != nil {
		return p.deployment, resp, p.noKey(err)
	}
	resp, err = p.client.complete(withPermit(waiting, p.permit), p.call, s.question)
	if denial := h.denial(w, err); denial != nil {
		return nil, resp, outcome{verdict: denied, err: denial}
	}
	o = p.judge(ctx, err)
	p.note(&o)
	return p.deployment, resp, o
}

// choose returns a permit of the first deployment that has one. Errors: the *throttle.Error of the one that would have a permit first, if
// none has within the time of ctx; errLost; the cause of ctx; ErrClosed.
func (h *handler) choose(ctx context.Context, s *search) (pick, error) {
	within := h.settings.SpillAfter
	if most := h.settings.MaxWait; most > 0 { // which is enough for all of them
		within = min(within, most/time.Duration(len(h.deployments)+1))
	}
	for _, d := range h.deployments {
		p, err := d.offer(ctx, s, within)
		if err == nil || errors.Is(err, throttle.ErrClosed) || ctx.Err() != nil {
			return p, err
		}
		if tooLarge(err) {
			s.lost[d] = judge(ctx, err)
		}
	}
	return h.race(ctx, s)
}

// offer returns a permit if there is one within a while. Errors: errPassedBy, and those of the limiter.
func (d *deployment) offer(ctx context.Context, s *search, within time.Duration) (pick, error) {
	if _, lost := s.lost[d]; lost || time.Now().Before(s.later[d]) || d.pause.Paused("") > 0 {
		return pick{}, errPassedBy
	}
	trial, open := d.breaker.tryPass()
	if !open {
		return pick{}, errPassedBy
	}
	p := pick{deployment: d, trial: trial}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var err error
	if p.call, p.permit, err = d.draw(ctx, s); err != nil {
		d.breaker.leave(trial)
		return pick{}, err
	}
	if d.pause.Paused("") > 0 { // it began in the meantime
		p.release()
		return pick{}, errPassedBy
	}
	return p, nil
}

// draw waits for the permit of a call.
func (d *deployment) draw(ctx context.Context, s *search) (*account.Call, throttle.Permit, error) {
	c := d.call(s.question)
	if d.limiter == nil {
		return c, throttle.Permit{}, nil
	}
	permit, err := d.limiter.Acquire(account.WithCall(ctx, c), 1)
	return c, permit, err
}

// race waits at all deployments at once, and returns the first permit. Other permits are returned before it returns.
func (h *handler) race(ctx context.Context, s *search) (pick, error) {
	type end struct {
		pick
		err error
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ends, n := make(chan end, len(h.deployments)), 0
	for _, d := range h.deployments {
		if _, lost := s.lost[d]; lost {
			continue
		}
		n++
		go func() {
			p, err := d.await(running, s)
			ends <- end{p, err}
		}()
	}
	if n == 0 {
		return pick{}, errLost
	}
	var won *pick
	var first error
	for range n {
		e := <-ends
		switch {
		case e.err != nil:
			first = sooner(first, e.err)
		case won != nil:
			e.release()
		default:
			won = &e.pick
			cancel()
		}
	}
	switch {
	case won != nil:
		return *won, nil
	case ctx.Err() != nil:
		if _, refused := errors.AsType[*throttle.Error](first); !refused {
			return pick{}, context.Cause(ctx)
		}
	}
	return pick{}, first
}

// sooner returns the error with the earlier permit, but ErrClosed before any other.
func sooner(a, b error) error {
	if a == nil || errors.Is(b, throttle.ErrClosed) {
		return b
	}
	first, ok := errors.AsType[*throttle.Error](a)
	second, also := errors.AsType[*throttle.Error](b)
	if !errors.Is(a, throttle.ErrClosed) && also && (!ok || second.RetryAfter > 0 && (first.RetryAfter == 0 || second.RetryAfter < first.RetryAfter)) {
		return b
	}
	return a
}

// await waits until the deployment can take the message. Errors: *throttle.Error, at once if ctx ends before; the cause of ctx.
func (d *deployment) await(ctx context.Context, s *search) (pick, error) {
	for {
		if held := max(time.Until(s.later[d]), d.pause.Paused("")); held > 0 {
			if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) < held {
				return pick{}, hook.Refuse(d.limiter, throttle.Error{Reason: throttle.ReasonPause, RetryAfter: held})
			}
			if err := sleep(ctx, held); err != nil {
				return pick{}, err
			}
			continue
		}
		p := pick{deployment: d}
		var err error
		if d.settings.OnStop == holdOnStop {
			if p.trial, err = d.breaker.pass(ctx); err != nil {
				return pick{}, err
			}
		}
		if p.call, p.permit, err = d.draw(ctx, s); err != nil {
			d.breaker.leave(p.trial)
			return pick{}, err
		}
		if d.pause.Paused("") <= 0 {
			return p, nil
		}
		p.release() // a pause began while it waited
	}
}
