package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/internal/chat"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A verdict is the treatment of a call.
type verdict string

const (
	// answered: the message has its answer.
	answered verdict = "answered"
	// wait: a limit is used up. The message is sent again; the transport holds it back.
	wait verdict = "wait"
	// overload: the provider is overloaded. The message is sent again after a while.
	overload verdict = "overload"
	// stop: no waiting helps until a person acts. See the setting onStop.
	stop verdict = "stop"
	// invalid: this message would always be refused. It is answered with an error.
	invalid verdict = "invalid"
	// failed: anything else. The message is sent again, a bounded number of times.
	failed verdict = "failed"
	// denied: the call was not sent, because it would have waited for longer than maxWait.
	denied verdict = "denied"
	// ended: the message's context has ended or the limiter is closed. It has no answer.
	ended verdict = "ended"
)

// An outcome is the result of one call.
type outcome struct {
	verdict verdict
	// after is the transport's wait before the next call, or when a stop ends; 0 for none.
	after time.Duration
	// code is a word for the fault, and text describes it for people. Neither contains a secret or sent data.
	code, text string
	// words is the text of the provider or the model, without secrets. It may repeat the prompt, so it is only for the result, not for the
	// log.
	words string
	// known is the known part of an unusable answer.
	known chat.Answer
	// tooLarge: the call is too large for this deployment. Another may take it.
	tooLarge bool
	// detail is only for the log: the reason why a call did not reach the endpoint. It is empty if the endpoint answered.
	detail string
	err    error
}

// judge decides about a call that ended with err.
func judge(ctx context.Context, err error) outcome {
	refused, isRefused := errors.AsType[*httpthrottle.RefusedError](err)
	throttled, isThrottled := errors.AsType[*throttle.Error](err)
	status, isStatus := errors.AsType[*statusError](err)
	inBody, isInBody := errors.AsType[*hiddenError](err)
	fault, isFault := errors.AsType[*chat.Fault](err)
	switch {
	case err == nil:
		return outcome{verdict: answered}
	case ctx.Err() != nil, errors.Is(err, throttle.ErrClosed):
		return outcome{verdict: ended, err: err}
	case isRefused:
		return judgeRefusal(refused.Refusal, err)
	case isThrottled && throttled.Reason == throttle.ReasonTooLarge:
		return outcome{verdict: invalid, code: codeTooLarge, text: "the limits can never grant what the call would take", err: err}
	case isThrottled:
		return outcome{verdict: wait, after: throttled.RetryAfter, code: "throttled", text: err.Error(), err: err}
	case isStatus:
		return judgeStatus(status.status, status.fault, err)
	case isInBody:
		return judgeInBody(inBody)
	case isFault:
		return judgeFault(fault)
	case errors.Is(err, errTimeout):
		return outcome{verdict: failed, code: "timeout", text: errTimeout.Error(), err: err}
	case errors.Is(err, errRedirected):
		return outcome{verdict: stop, code: "redirected", text: errRedirected.Error(), err: err}
	case errors.Is(err, errTooLong):
		return outcome{verdict: invalid, code: "answer_too_long", text: errTooLong.Error(), err: err}
	}
	return judgeConnection(err)
}

// judgeConnection judges an error without a response, or with a part of one.
func judgeConnection(err error) outcome {
	o := outcome{verdict: failed, code: "failed", text: "the endpoint could not be reached, or ended the connection without an answer", err: err}
	if _, unsent := errors.AsType[*unsentError](err); unsent {
		o.code, o.text = "not_sent", "the call could not be sent, because of the settings; the log says why"
	}
	if cut, is := errors.AsType[*cutError](err); is {
		o.code, o.text = string(chat.Broken), "the connection ended in the middle of the answer"
		o.detail = cut.err.Error()
	}
	if at, ok := errors.AsType[*url.Error](err); ok { // from the connection: it contains nothing of the request
		o.detail = at.Err.Error()
	}
	return o
}

// tooLargeOutcome returns the outcome of a call that is not made, because of its size.
func tooLargeOutcome(f *fault) outcome {
	return outcome{verdict: invalid, code: f.Code, text: f.Message}
}

func judgeRefusal(r httpthrottle.Refusal, err error) outcome {
	o := outcome{verdict: wait, code: "rate_limited", err: err}
	switch r.Class {
	case httpthrottle.Overload:
		o.verdict, o.code, o.after = overload, "overloaded", r.RetryAfter
	case httpthrottle.Stop:
		o.verdict, o.code, o.after = stop, "quota_spent", r.RetryAfter
	case httpthrottle.Wait: // unchanged; the transport's pause holds the message back
	}
	if r.Code != "" {
		o.code = r.Code
	}
	o.text = (&httpthrottle.RefusedError{Refusal: r}).Error()
	return o
}

// judgeStatus judges a response that is not a refusal, by its status.
func judgeStatus(status int, f *chat.Fault, err error) outcome {
	o := outcome{
		verdict: verdictOf(statusBy(status, f.Code)), tooLarge: tooLargeFor(status), code: f.Code, words: f.Words, err: err,
		text: fmt.Sprintf("the endpoint answered with status %d", status),
	}
	if o.code == "" {
		o.code = strconv.Itoa(status)
	} else {
		o.text += ", code " + f.Code
	}
	if status != http.StatusPaymentRequired { // the classifier has judged it: this call alone is too expensive
		o = o.orSpent(f)
	}
	if f.Param == "max_tokens" || f.Param == "max_completion_tokens" {
		o.text += " (see the setting maxTokensField)"
	}
	return o
}

// statusBy returns the status that a code implies beside one that providers use for several faults; else the same status.
func statusBy(status int, code string) int {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
	default:
		return status
	}
	switch implied := chat.StatusOf(code); implied {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity:
		return implied
	}
	return status
}

// orSpent returns the outcome of a spent budget if the error indicates one, else the same outcome.
func (o outcome) orSpent(f *chat.Fault) outcome {
	if o.verdict != invalid && (o.verdict != failed || f.Status != 0) {
		return o
	}
	if code, spent := spentIn(f); spent {
		o.verdict, o.code = stop, code
		o.text += ": a budget is spent (" + code + ")"
	}
	return o
}

// spentIn reports whether an error indicates a spent budget, and its code: some providers use a status for faults of a message. Only words
// before any quoted text count, because that may come from the prompt.
func spentIn(f *chat.Fault) (code string, spent bool) {
	const longest = 200
	words := f.Words[:min(len(f.Words), longest)]
	if at := strings.IndexAny(words, "\"'`“:{["); at >= 0 {
		words = words[:at]
	}
	body, err := json.Marshal(map[string]any{"error": map[string]string{"code": f.Code, "message": words}})
	if err != nil {
		return "", false
	}
	r, _ := httpthrottle.OpenAI(httpthrottle.Answer{Status: http.StatusTooManyRequests, Body: body, At: time.Now()})
	return cmp.Or(r.Code, "quota_spent"), r.Class == httpthrottle.Stop
}

// verdictOf returns the verdict for a status that is not a refusal. A status of 400 to 499 that doesn't say that the message is at fault, such
// as 424 and 499, may be another one the next time.
func verdictOf(status int) verdict {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return stop // the key, the model or the URL is wrong, for all messages
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone, http.StatusLengthRequired,
		http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnsupportedMediaType,
		http.StatusRequestedRangeNotSatisfiable, http.StatusExpectationFailed, http.StatusUnprocessableEntity,
		http.StatusRequestHeaderFieldsTooLarge, http.StatusUnavailableForLegalReasons:
		return invalid
	case http.StatusPaymentRequired, http.StatusTooManyRequests:
		return invalid // this call alone is too expensive, or larger than the limit
	}
	return failed
}

// tooLargeFor reports whether a status that is not a refusal says that a call is too large for its deployment.
func tooLargeFor(status int) bool {
	return status == http.StatusRequestEntityTooLarge || status == http.StatusTooManyRequests
}

// judgeInBody judges a refusal without an error status. The transport does not know of it, so the message itself waits.
func judgeInBody(e *hiddenError) outcome {
	o := judgeRefusal(e.refusal, e)
	if o.verdict == wait {
		o.verdict, o.after = overload, e.refusal.RetryAfter
	}
	o.words, o.known = e.fault.Words, e.fault.Answer
	o.text = fmt.Sprintf("the endpoint answered with status %d, and in the body: %s", e.status, o.text)
	return o
}

// faults maps the kinds of unusable answers to their treatment and reason.
var faults = map[chat.Kind]struct {
	verdict verdict
	text    string
}{
	chat.NoBody:    {failed, "the answer is empty: it has no body"},
	chat.NotJSON:   {failed, "the answer is no JSON"},
	chat.NoChoices: {failed, "the answer of the endpoint has no choices"},
	chat.Empty:     {invalid, "the model answered with nothing"},
	chat.Refused:   {invalid, "the model refused to answer"},
	chat.Filtered:  {invalid, "a filter of the provider took the answer away"},
	chat.Broken:    {failed, "the answer broke off"},
	chat.Provider:  {failed, "the endpoint answered with an error in the place of an answer"},
}

// judgeFault judges an unusable answer with a success status.
func judgeFault(f *chat.Fault) outcome {
	o := outcome{
		verdict: faults[f.Kind].verdict, text: faults[f.Kind].text, code: string(f.Kind), words: f.Words, known: f.Answer, err: f,
	}
	if f.Kind == chat.Provider && f.Status != 0 {
		o.verdict, o.tooLarge = verdictOf(f.Status), tooLargeFor(f.Status)
		o.code = strconv.Itoa(f.Status)
	}
	if f.Code != "" {
		o.code = f.Code
		o.text += ", code " + f.Code
	}
	if f.Kind == chat.Provider {
		o = o.orSpent(f)
	}
	return o
}
