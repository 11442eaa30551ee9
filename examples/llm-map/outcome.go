package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A verdict is what is done about a call.
type verdict string

const (
	// answered: the message has its answer.
	answered verdict = "answered"
	// wait: a limit is used up. The message is sent again; the transport holds it back.
	wait verdict = "wait"
	// overload: the provider has too much to do. It is sent again after a while.
	overload verdict = "overload"
	// stop: no waiting helps until a person does something. See the setting onStop.
	stop verdict = "stop"
	// invalid: this message would be refused again and again. It is answered with an error.
	invalid verdict = "invalid"
	// failed: anything else. It is sent again, a bounded number of times.
	failed verdict = "failed"
	// denied: the call was not sent, for it would have waited for longer than maxWait.
	denied verdict = "denied"
	// ended: the message's context has ended or the limiter is closed. It has no answer.
	ended verdict = "ended"
)

// An outcome is what became of one call.
type outcome struct {
	verdict verdict
	// after is how long the transport says to wait before the next call; 0 for nothing.
	after time.Duration
	// code is a word for what is wrong, text says it for people. Neither holds a secret,
	// nor anything that the provider's answer says about the account.
	code, text string
	// detail is for the log only: what kept a call from reaching the endpoint. It is empty
	// when the endpoint answered.
	detail string
	err    error
}

// judge says what to do about a call that ended with err.
func judge(ctx context.Context, err error) outcome {
	refused, isRefused := errors.AsType[*httpthrottle.RefusedError](err)
	throttled, isThrottled := errors.AsType[*throttle.Error](err)
	api, isAPI := errors.AsType[*openai.APIError](err)
	raw, isRaw := errors.AsType[*openai.RequestError](err)
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
	case isAPI:
		return judgeStatus(api.HTTPStatusCode, apiCode(api), err)
	case isRaw:
		return judgeStatus(raw.HTTPStatusCode, "", err)
	case errors.Is(err, errTimeout):
		return outcome{verdict: failed, code: "timeout", text: errTimeout.Error(), err: err}
	case errors.Is(err, errRedirected):
		return outcome{verdict: stop, code: "redirected", text: errRedirected.Error(), err: err}
	}
	o := outcome{verdict: failed, code: "failed", text: "the endpoint could not be reached, or its answer not be read", err: err}
	if at, ok := errors.AsType[*url.Error](err); ok { // from the connection: it holds nothing of the request
		o.detail = at.Err.Error()
	}
	return o
}

func judgeRefusal(r httpthrottle.Refusal, err error) outcome {
	o := outcome{verdict: wait, code: "rate_limited", err: err}
	switch r.Class {
	case httpthrottle.Overload:
		o.verdict, o.code, o.after = overload, "overloaded", r.RetryAfter
	case httpthrottle.Stop:
		o.verdict, o.code = stop, "quota_spent"
	case httpthrottle.Wait: // as it is; the transport's pause holds the message back
	}
	if r.Code != "" {
		o.code = r.Code
	}
	o.text = (&httpthrottle.RefusedError{Refusal: r}).Error()
	return o
}

// judgeStatus judges an answer that is no refusal, by its status. The provider's message
// stays out: it may repeat the prompt, and in part the key.
func judgeStatus(status int, code string, err error) outcome {
	o := outcome{code: code, text: fmt.Sprintf("the endpoint answered with status %d", status), err: err}
	if code == "" {
		o.code = strconv.Itoa(status)
	} else {
		o.text += ", code " + code
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusPaymentRequired:
		o.verdict = stop // the key, the model or the URL is wrong, for all messages
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= http.StatusInternalServerError:
		o.verdict = failed
	case status >= http.StatusBadRequest:
		o.verdict = invalid
	default:
		o.verdict = failed
	}
	return o
}

// apiCode returns the provider's word for what is wrong, if it is one.
func apiCode(e *openai.APIError) string {
	for _, word := range []any{e.Code, e.Type} {
		if text, ok := word.(string); ok && isWord(text) {
			return text
		}
	}
	return ""
}

// isWord tells whether a provider's text is fit for results and logs.
func isWord(text string) bool {
	for _, r := range text {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.' {
			return false
		}
	}
	return text != "" && len(text) <= 64
}
