package permits

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/numaproj-contrib/numathrottle/internal/bounds"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	maxTokens = 1_000_000_000
	maxTag    = 256
)

// seconds is a duration in a request; nil for none.
type seconds = *float64

type acquireRequest struct {
	Tokens  *whole  `json:"tokens,omitempty"`
	UpTo    bool    `json:"up_to,omitempty"`
	Tag     string  `json:"tag,omitempty"`
	Timeout seconds `json:"timeout_seconds,omitempty"`
	Lease   seconds `json:"lease_seconds,omitempty"`
}

type acquireResponse struct {
	Permit string  `json:"permit"`
	Tokens int     `json:"tokens"`
	Lease  float64 `json:"lease_seconds"`
}

type settleRequest struct {
	Permit  string `json:"permit"`
	Used    *whole `json:"used,omitempty"`
	Outcome string `json:"outcome,omitempty"`
}

type cancelRequest struct {
	Permit string `json:"permit"`
}

// A doneResponse is the final state of a permit. Already reports whether it had ended before, so that nothing changed.
type doneResponse struct {
	State   string `json:"state"`
	Already bool   `json:"already"`
}

type reportRequest struct {
	Permit     string  `json:"permit,omitempty"`
	Outcome    string  `json:"outcome,omitempty"`
	RetryAfter seconds `json:"retry_after_seconds,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	Tag        string  `json:"tag,omitempty"`
}

type reportResponse struct {
	Already bool `json:"already"`
}

type pauseRequest struct {
	Seconds seconds `json:"seconds,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Tag     string  `json:"tag,omitempty"`
	Resume  bool    `json:"resume,omitempty"`
}

type pauseResponse struct {
	Until    string   `json:"until,omitempty"`
	Answered []string `json:"answered"`
	Missing  []string `json:"missing"`
}

func (r *acquireRequest) tokens() int {
	if r.Tokens == nil {
		return 1
	}
	return int(*r.Tokens)
}

func (r *acquireRequest) wait(most time.Duration) time.Duration {
	return min(duration(r.Timeout, most), most)
}

func (r *acquireRequest) lease(byDefault time.Duration) time.Duration {
	return duration(r.Lease, byDefault)
}

func duration(s seconds, byDefault time.Duration) time.Duration {
	if s == nil {
		return byDefault
	}
	return time.Duration(*s * float64(time.Second))
}

func (r *acquireRequest) check() error {
	return errors.Join(
		inRange("tokens", r.Tokens, 0, maxTokens),
		isTag(r.Tag),
		within("timeout_seconds", r.Timeout, 0, longestWait),
		within("lease_seconds", r.Lease, time.Second, longestLease),
	)
}

func (r *settleRequest) check() error {
	return errors.Join(isPermit(r.Permit), inRange("used", r.Used, 0, maxTokens), isOutcome(r.Outcome, true))
}

func (r *cancelRequest) check() error { return isPermit(r.Permit) }

func (r *reportRequest) check() error {
	if r.Permit == "" && r.RetryAfter == nil {
		return proxy.FieldError("permit", "missing", "a permit with an outcome, or retry_after_seconds")
	}
	if r.Permit != "" {
		if err := errors.Join(isPermit(r.Permit), isOutcome(r.Outcome, false)); err != nil {
			return err
		}
	} else if r.Outcome != "" {
		return proxy.FieldError("permit", "missing", "with an outcome, the permit of the call")
	}
	return errors.Join(isTag(r.Tag), within("retry_after_seconds", r.RetryAfter, 0, bounds.MaxPause), isText("reason", r.Reason))
}

func (r *pauseRequest) check() error {
	if r.Resume && r.Seconds != nil {
		return proxy.FieldError("seconds", strconv.FormatFloat(*r.Seconds, 'g', -1, 64), "none with resume")
	}
	return errors.Join(within("seconds", r.Seconds, time.Millisecond, bounds.MaxPause), isText("reason", r.Reason), isTag(r.Tag))
}

func inRange(field string, n *whole, least, most whole) error {
	if n == nil || *n >= least && *n <= most {
		return nil
	}
	return proxy.FieldError(field, strconv.Itoa(int(*n)), fmt.Sprintf("a whole number, %d to %d", least, most))
}

func within(field string, s seconds, least, most time.Duration) error {
	if s == nil || *s >= least.Seconds() && *s <= most.Seconds() {
		return nil
	}
	return proxy.FieldError(field, strconv.FormatFloat(*s, 'g', -1, 64), fmt.Sprintf("%g to %g", least.Seconds(), most.Seconds()))
}

func isTag(tag string) error {
	if len(tag) <= maxTag && isLine(tag) {
		return nil
	}
	return proxy.FieldError("tag", fmt.Sprintf("%.40q", tag), fmt.Sprintf("up to %d bytes of text without control characters", maxTag))
}

func isText(field, text string) error {
	if len(text) <= maxTag && isLine(text) {
		return nil
	}
	return proxy.FieldError(field, fmt.Sprintf("%.40q", text), fmt.Sprintf("up to %d bytes of text without control characters", maxTag))
}

func isLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func isPermit(id string) error {
	if id != "" && len(id) <= 64 {
		return nil
	}
	return proxy.FieldError("permit", fmt.Sprintf("%.40q", id), "what /v1/acquire returned")
}

// outcomes maps the words for a service's response to outcomes.
var outcomes = map[string]throttle.Outcome{"accepted": throttle.OutcomeAccepted, "refused": throttle.OutcomeRefused, "overloaded": throttle.OutcomeOverloaded}

func isOutcome(word string, optional bool) error {
	if _, ok := outcomes[word]; ok || optional && word == "" {
		return nil
	}
	return proxy.FieldError("outcome", fmt.Sprintf("%.40q", word), "accepted, refused or overloaded")
}

// mark is the byte order mark, with which some clients begin UTF-8.
const mark = "\ufeff"

func packed(problem string) error {
	return proxy.NewError(http.StatusUnsupportedMediaType, proxy.MediaType, problem+", allowed: JSON that is not packed")
}

// decode reads the body of a request into r.
func decode(w http.ResponseWriter, req *http.Request, r interface{ check() error }) error {
	kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		// A web page in a browser cannot send this type to another site without asking it.
		return proxy.NewError(http.StatusUnsupportedMediaType, proxy.MediaType,
			fmt.Sprintf("Content-Type is %.60q, allowed: application/json", req.Header.Get("Content-Type")))
	}
	if coding := strings.Join(req.Header.Values("Content-Encoding"), ", "); coding != "" && !strings.EqualFold(coding, "identity") {
		return packed(fmt.Sprintf("Content-Encoding is %.40q", coding))
	}
	body := bufio.NewReader(http.MaxBytesReader(w, req.Body, maxBody))
	switch head, _ := body.Peek(len(mark)); {
	case string(head) == mark:
		_, _ = body.Discard(len(mark))
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return packed("the body is gzip")
	case bytes.IndexByte(head, 0) >= 0, bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return proxy.NewError(http.StatusBadRequest, proxy.BadRequest, "the body is UTF-16 or UTF-32, allowed: JSON in UTF-8")
	}
	dec := json.NewDecoder(body)
	var object json.RawMessage // null would be none, and no error
	if err := dec.Decode(&object); err != nil {
		return badJSON(err)
	}
	if object[0] != '{' {
		return badJSON(errNoObject)
	}
	of := json.NewDecoder(bytes.NewReader(object))
	of.DisallowUnknownFields()
	if err := of.Decode(r); err != nil {
		return badJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return proxy.NewError(http.StatusBadRequest, proxy.BadRequest, "the body has something behind the JSON object, allowed: one object")
	}
	if err := r.check(); err != nil {
		return first(err)
	}
	return nil
}

// first returns the first of several faults, because an answer names one field.
func first(err error) error {
	if e, ok := errors.AsType[*proxy.Error](err); ok {
		e.Message = strings.ReplaceAll(err.Error(), "\n", "; ")
		return e
	}
	return err
}

var errNoObject = errors.New("it is no object")

func badJSON(err error) error {
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return proxy.NewError(http.StatusRequestEntityTooLarge, proxy.TooLong,
			fmt.Sprintf("the body is longer than %d bytes, which is the most", tooLong.Limit))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return proxy.LateError("the body")
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		allowed := map[reflect.Kind]string{reflect.Float64: "a number", reflect.String: "a text", reflect.Bool: "true or false"}[wrong.Type.Kind()]
		if wrong.Type == reflect.TypeFor[whole]() {
			allowed = fmt.Sprintf("a whole number, 0 to %d", maxTokens)
		}
		return proxy.FieldError(wrong.Field, "a "+wrong.Value, allowed)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return proxy.NewError(http.StatusBadRequest, proxy.BadRequest, fmt.Sprintf("%.60s is no field of this call; see /v1/openapi.yaml", field))
	}
	return proxy.NewError(http.StatusBadRequest, proxy.BadRequest, "the body is not the JSON object that this call takes; see /v1/openapi.yaml")
}
