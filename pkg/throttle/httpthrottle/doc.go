// Package httpthrottle limits what an HTTP client sends, and obeys what the service says about its own limits. [NewTransport] makes an
// [http.RoundTripper], which works under any client library that takes an *http.Client:
//
//	client := &http.Client{Transport: httpthrottle.NewTransport(nil, limiter, httpthrottle.WithClassifier(httpthrottle.OpenAI))}
//
// Switch off the retries of the library itself: this transport retries within the
// limit, and knows when not to.
//
// # One attempt
//
// Each attempt, the first as well as every further one, and each hop of a redirect:
//
//  1. waits for the end of a pause, if a refusal began one;
//  2. waits for its tokens ([WithCost], [WithTag]), as [throttle.Limiter] does: it fails
//     at once when the context's deadline is too near;
//  3. is sent;
//  4. is reported to the limiter, which may be adaptive (throttle.Limit.Adaptive): as
//     refused, as overloaded, or as accepted if its status is below 500;
//  5. is settled: with what [WithMeter] finds in the response, at the end of its body; else as
//     drawn. An attempt that failed or was refused counts as drawn, because services
//     count it.
//
// An http.Client with a Timeout hands its deadline on, so step 2 sees it.
//
// # One request for each permit
//
// net/http sends a request again by itself, as often as there is reason to. Over HTTP/1.1 it does so when a reused connection ends without
// an answer, for GET, HEAD and all requests with an Idempotency-Key. Over HTTP/2 it does so when the service refuses the stream or sends
// the connection away. Such a repeat is stopped before anything of it is written, and becomes an attempt. It waits for pauses, draws, and
// counts for [WithMaxAttempts], [WithMaxElapsed] and everything that counts the calls of the base. Since net/http takes it for safe, it needs
// no [RetryFailures]. The first follows at once, later ones with a backoff. When none is left, the error is [ErrUnanswered], with the reason.
// So with WithMaxAttempts(1) the service sees one request.
//
// Repeats after an error by a transport between this one and net/http become attempts as well. A request that it sends after an answer, to
// log in or because of a 503, waits there for a permit of its own, and counts as an attempt. [NewTransport] says how such a transport has to
// behave for that.
//
// If net/http tries another connection because nothing could be written to the first, that is no repeat, and costs nothing. Where that
// cannot be known, the request counts as sent.
//
// Waits of step 1, and waits for the next attempt after a refusal, show at the limiter as its own do, with throttle.ReasonPause. They show
// in WaitStats and Status, for its observers, in metrics and traces. Throttled does not include them, for the
// limiter itself has tokens.
//
// # Refusals
//
// A Classifier says which answers are refusals, and names their class:
//
//	class     examples                              the call             others of the process
//	Wait      429 rate_limit_exceeded               waits, tries again   wait as long, if it says how long
//	Overload  503, 529 overloaded_error             waits, tries again   wait as long, if it says how long
//	Stop      429 insufficient_quota, a limit of 0  ends at once         go on
//
// A call waits as long as the service says and up to a tenth longer, a second at most; never less. So callers with the same time do not
// come back at the same instant. Reading the body of a refusal takes a second at most. Meanwhile the calls with the same tag are held back,
// if its head says for how long or is a 429. So no more are sent until its content is known. Of a body that takes longer, or is longer than
// 1 MiB, only the part that has come is looked at; the response has all of it. [Answer.RetryAfter] lists where the service may say when to
// come back. If it does not, the wait is half a second, doubled with each attempt, at most 30 s or [Refusal.MaxBackoff], and up to half as long again.
//
// It tries again only if
//   - the service has not acted on the request ([Refusal.NotProcessed]), or the request is
//     idempotent, by its method or an Idempotency-Key ([WithIdempotencyKey]);
//   - the body can be sent again: by GetBody, or from memory ([WithBodyBuffer]);
//   - attempts ([WithMaxAttempts], 4) and time ([WithMaxElapsed], 5 min) are left, and the wait
//     is neither longer than [WithMaxWait] (1 min) nor than the context allows. A longer wait
//     is never cut short.
//
// Otherwise the response is returned, as it came, or an error; see [RefusalsAsErrors]. The Feedback decides what the others learn of a
// refusal. Without one of the user's own, the limiter receives each Wait that says for how long (throttle.Throttle.RetryAfter). That pauses
// the pool if two of its processors receive one. The limiter does not receive an Overload, which may be the trouble of one server of many.
// Calls that meet a pause longer than they may wait fail at once, with the time to retry: a *throttle.Error with throttle.ReasonPause. So a
// message can be given back to its source for that time.
//
// # LLMs
//
// Package pkg/llm limits calls of LLMs as their providers count them: by requests, tokens of prompts and of answers, and calls in flight. Its
// transports are made of this one.
package httpthrottle
