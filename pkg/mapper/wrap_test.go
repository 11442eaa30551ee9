package mapper_test

import (
	"bytes"
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

func datum(value string) mapsdk.Datum {
	return mapsdk.NewHandlerDatum([]byte(value), time.Time{}, time.Time{}, nil, nil, nil)
}

func forward(value string) mapsdk.Message { return mapsdk.NewMessage([]byte(value)) }

// handler is comparable, unlike a MapperFunc, and counts its calls.
type handler struct {
	calls int
	out   mapsdk.Messages
	do    func()
}

func (h *handler) Map(context.Context, []string, mapsdk.Datum) mapsdk.Messages {
	h.calls++
	if h.do != nil {
		h.do()
	}
	return h.out
}

// An outcome is how a call of Map ended.
type outcome struct {
	returned bool
	out      mapsdk.Messages
	panicked any // nil with returned false: the goroutine exited
}

// call runs m in a goroutine of its own, which it may end.
func call(ctx context.Context, m mapsdk.Mapper) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.out = m.Map(ctx, []string{"key"}, datum("value"))
		o.returned = true
	}()
	return done
}

func TestAMessageDrawsOneTokenAndReachesTheHandlerUnchanged(t *testing.T) {
	type ctxKey struct{}
	ctx := context.WithValue(t.Context(), ctxKey{}, "v")
	want := mapsdk.MessagesBuilder().Append(forward("out").WithKeys([]string{"k"}).WithTags([]string{"t"}))
	d := datum("in")
	l := throttletest.New()
	m := mapper.Wrap(mapsdk.MapperFunc(func(got context.Context, keys []string, gotDatum mapsdk.Datum) mapsdk.Messages {
		require.Equal(t, "v", got.Value(ctxKey{}))
		require.Equal(t, []string{"a", "b"}, keys)
		require.Same(t, d, gotDatum)
		require.Equal(t, 1, l.Used(), "drawn before the handler runs")
		return want
	}), l, nil)
	require.Equal(t, want, m.Map(ctx, []string{"a", "b"}, d))
	require.Equal(t, []throttletest.Draw{{Method: throttletest.Acquire, Cost: 1, Granted: 1, Used: 1}}, l.Draws())
}

func TestExemptDropped(t *testing.T) {
	drop, nack := mapsdk.MessageToDrop(), mapsdk.MessageToNack(nil)
	for name, c := range map[string]struct {
		out    []mapsdk.Message
		exempt bool
	}{
		"a drop":                {[]mapsdk.Message{drop}, true},
		"two drops":             {[]mapsdk.Message{drop, drop}, true},
		"a drop and a forward":  {[]mapsdk.Message{drop, forward("x")}, false},
		"a forward and a drop":  {[]mapsdk.Message{forward("x"), drop}, false},
		"a forward":             {[]mapsdk.Message{forward("x")}, false},
		"nothing":               {nil, false},
		"a nack":                {[]mapsdk.Message{nack}, false},
		"a drop and a nack":     {[]mapsdk.Message{drop, nack}, false},
		"drop among other tags": {[]mapsdk.Message{forward("x").WithTags([]string{"t", mapsdk.DROP})}, true},
		"drop wins over nack":   {[]mapsdk.Message{forward("x").WithTags([]string{mapsdk.NACK, mapsdk.DROP})}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New()
			o := <-call(t.Context(), mapper.Wrap(&handler{out: c.out}, l, mapper.ExemptDropped()))
			require.True(t, o.returned)
			require.Equal(t, mapsdk.Messages(c.out), o.out)
			require.Equal(t, c.exempt, l.Used() == 0)

			l = throttletest.New()
			<-call(t.Context(), mapper.Wrap(&handler{out: c.out}, l))
			require.Equal(t, 1, l.Used(), "without the option")
		})
	}
}

func TestTheLogSaysWhyAndNothingOfTheMessage(t *testing.T) {
	var buf bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&buf, nil))
	refusal := &throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1000}
	<-call(t.Context(), mapper.Wrap(&handler{}, throttletest.New(throttletest.Deny(refusal)), mapper.WithLogger(logger)))
	require.Contains(t, buf.String(), "a cost of 1000 can never be granted")
	require.NotContains(t, buf.String(), "value")
	require.NotContains(t, buf.String(), `"key"`)

	buf.Reset()
	l := throttletest.New()
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	m := mapper.Wrap(&handler{}, l, mapper.WithLogger(logger))
	first, second := call(ctx, m), call(ctx, m)
	cancel()
	<-first
	<-second
	require.Equal(t, 1, bytes.Count(buf.Bytes(), []byte("limiter closed")), "said once, not for each message")
}
