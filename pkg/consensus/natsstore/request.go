package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/internal/bounded"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// callTimeout bounds one request to the server.
const callTimeout = 600 * time.Millisecond

// JetStream's error codes that matter here.
const (
	codeNotEnabled       = 10076
	codeNotEnabledForAcc = 10039
	codeNoMessage        = 10037
	codeStreamNotFound   = 10059
	codeNameInUse        = 10058
	codeNotClustered     = 10074
	codeNotAvailable     = 10008 // no leader
	codeWrongSequence    = 10071
	codeTooLarge         = 10054
	codeStoreFailed      = 10077 // for a reason that it describes
	codeInProcess        = 10164 // another write of the same subject is on its way
)

// apiError is an error in an answer of JetStream.
//
//nolint:tagliatelle // the names are JetStream's
type apiError struct {
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s (JetStream error %d)", e.Description, e.ErrCode)
}

// is reports whether err is JetStream's error with one of the codes.
func is(err error, codes ...int) bool {
	var api *apiError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrCode)
}

// apiReply is the common part of all replies.
type apiReply struct {
	Err *apiError `json:"error"`
}

func (r *apiReply) failed() *apiError { return r.Err }

// api returns the subject of a request about the stream. The package never uses requests under DIRECT.GET, which any replica may answer.
func (s *Store) api(verb string) string { return "$JS.API." + verb + "." + s.stream }

// ask sends a request, nil for an empty one, and decodes its reply.
func (s line) ask(ctx context.Context, timeout time.Duration, subject string, request any, reply interface{ failed() *apiError }) error {
	msg := nats.NewMsg(subject)
	if request != nil {
		data, err := json.Marshal(request)
		if err != nil {
			return fmt.Errorf("natsstore: %s: %w", subject, err)
		}
		msg.Data = data
	}
	return s.send(ctx, timeout, msg, reply)
}

// send sends a message and decodes its reply. After an error the server may still have acted on the message, unless the error is an
// *apiError.
func (s line) send(ctx context.Context, timeout time.Duration, msg *nats.Msg, reply interface{ failed() *apiError }) error {
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got, err := bounded.Call(call, func() (*nats.Msg, error) { return s.nc.RequestMsgWithContext(call, msg) })
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("natsstore: %s: no answer in time%s: %w", msg.Subject, s.refusal(msg.Subject), ctx.Err())
	case ctx.Err() != nil:
		return fmt.Errorf("natsstore: %s: %w", msg.Subject, ctx.Err())
	default:
		return fmt.Errorf("natsstore: %s: %w", msg.Subject, s.explain(msg.Subject, timeout, err))
	}
	if err := json.Unmarshal(got.Data, reply); err != nil {
		return fmt.Errorf("natsstore: %s: %w: %w", msg.Subject, driver.ErrWrongAnswer, err)
	}
	if api := reply.failed(); api != nil {
		if api.ErrCode == codeNotEnabled || api.ErrCode == codeNotEnabledForAcc {
			return fmt.Errorf("natsstore: JetStream must be enabled on the server and for the account: %w", api)
		}
		if api.ErrCode == codeNotAvailable {
			return errNoLeader
		}
		return fmt.Errorf("natsstore: %s: %w", msg.Subject, api)
	}
	return nil
}

// explain says what a client's error means. It never names the server's URL, which may contain a password.
func (s line) explain(subject string, timeout time.Duration, err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders) && strings.HasPrefix(subject, "$JS."):
		return fmt.Errorf("nobody answers: JetStream is not enabled on the server or for the account: %w", err)
	case errors.Is(err, nats.ErrNoResponders):
		return passing{fmt.Errorf("nobody takes the write: the bucket is gone, or its servers have no leader: %w", err), electionPause}
	case errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrDisconnected):
		return &unconnectedError{s.status(), err}
	case errors.Is(err, context.DeadlineExceeded):
		if status := s.status(); status != nats.CONNECTED {
			return fmt.Errorf("not connected to NATS (%v): %w", status, nats.ErrTimeout)
		}
		return fmt.Errorf("no answer within %v%s: %w", timeout, s.refusal(subject), nats.ErrTimeout)
	default:
		return err
	}
}

// An unconnectedError is the client's error without a connection, with a text that says so: its buffer is full, or it has no server.
type unconnectedError struct {
	status nats.Status
	err    error
}

func (e *unconnectedError) Error() string { return fmt.Sprintf("not connected to NATS (%v)", e.status) }

func (e *unconnectedError) Unwrap() error { return e.err }

// refusal returns the likely cause of a missing answer: the server reports a missing permission only to the connection, and drops the
// message.
func (s line) refusal(subject string) string {
	last := s.lastError()
	inbox := func(text string) bool { // missing news delays no answer
		return strings.Contains(text, "Subscription") && !strings.Contains(text, s.prefix+newsBranch)
	}
	if errors.Is(last, nats.ErrPermissionViolation) && (strings.Contains(last.Error(), `"`+subject+`"`) || inbox(last.Error())) {
		return ": the user lacks a permission: " + last.Error()
	}
	return " (the server is down or slow, has no leader, or the user may not publish there)"
}
