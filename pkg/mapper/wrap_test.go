package mapper_test

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // numaflow-go logs every panic with its stack
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

func forward(value string) mapsdk.Message { return mapsdk.NewMessage([]byte(value)) }

// throttled is what a limiter says whose next token takes 2 s.
func throttled() error {
	return &throttle.Error{Reason: throttle.ReasonLimit, Limit: "calls", Cost: 1, RetryAfter: 2 * time.Second}
}

// A tagger is a limiter that tells tags apart, and records which were asked for.
type tagger struct {
	*throttletest.Limiter

	asked []string
}

func (l *tagger) ForTag(tag string) throttle.Limiter {
	l.asked = append(l.asked, tag)
	return l.Limiter
}

// An empty answer is the user's choice, what is forwarded keeps its metadata, and a nack says why in the limiter's words.
func TestAnswersToDeniedMessages(t *testing.T) {
	deny := func(a mapper.Action) (*throttletest.Limiter, mapper.Option, mapper.Option) {
		return throttletest.New(throttletest.Deny(throttled()), throttletest.Grant()), mapper.WithMaxWait(time.Second), mapper.OnDenied(a)
	}
	nothing := mapper.DenyFunc(func(context.Context, []string, mapsdk.Datum, *throttle.Error) mapsdk.Messages { return nil })
	meta := mapsdk.NewUserMetadata()
	meta.AddKV("group", "k", []byte("v"))
	d := mapsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil, meta, nil)
	handler := mapsdk.MapperFunc(func(context.Context, []string, mapsdk.Datum) mapsdk.Messages { return mapsdk.Messages{forward("x")} })
	l, bound, action := deny(nothing)
	require.Empty(t, mapper.Wrap(handler, l, bound, action).Map(t.Context(), nil, d))
	l, bound, action = deny(nothing)
	o := <-callBatch(t.Context(), t, mapper.WrapBatch(&batchHandler{}, l, bound, action), "a b")
	require.Equal(t, batchOutcome{returned: true, answers: []string{"a=", "b=B"}}, o)
	l, bound, action = deny(nothing)
	require.Equal(t, ended(""), <-callStream(t.Context(), mapper.WrapStream(writing("a"), l, bound, action)))
	l, bound, action = deny(mapper.Forward("later"))
	forwarded := mapper.Wrap(handler, l, bound, action).Map(t.Context(), nil, d)[0].UserMetadata()
	require.Equal(t, "v", string(forwarded.Value("group", "k")))
	l, bound, action = deny(mapper.Nack())
	nack := mapper.Wrap(handler, l, bound, action).Map(t.Context(), nil, d)[0].NackOptions()
	require.Nil(t, nack.MaxDeliveries)
	require.Contains(t, *nack.Reason, `limit "calls": 1 tokens cannot be had in time (limit)`)
}

// With PerOutput the message is denied before its first output.
func TestStreamPerOutputACostThatCanNeverBeGrantedIsDeniedAlone(t *testing.T) {
	tooLarge := &throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1e12, Largest: 10}
	m := mapper.WrapStream(writing("a b"), throttletest.New(throttletest.Deny(tooLarge)), mapper.PerOutput())
	o := <-callStream(t.Context(), m)
	require.True(t, o.closed)
	require.Nil(t, o.panicked)
	require.Contains(t, o.sent, mapsdk.NACK)
	require.True(t, (<-callStream(t.Context(), m)).closed, "the next one is handled")
}
