package mapper_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// throttled is what a limiter says whose next token takes 2 s.
func throttled() error {
	return &throttle.Error{Reason: throttle.ReasonLimit, Limit: "calls", Cost: 1, RetryAfter: 2 * time.Second}
}

// requireNack checks an answer that nacks with a delay of 2 s and a bit.
func requireNack(tb testing.TB, tags []string, value []byte, opts *mapsdk.NackOptions) {
	tb.Helper()
	require.Equal(tb, []string{mapsdk.NACK}, tags)
	require.Empty(tb, value)
	require.NotNil(tb, opts)
	require.NotNil(tb, opts.Delay)
	require.GreaterOrEqual(tb, *opts.Delay, uint64(2000))
	require.LessOrEqual(tb, *opts.Delay, uint64(2501))
	require.Nil(tb, opts.MaxDeliveries)
	require.NotNil(tb, opts.Reason)
	require.Contains(tb, *opts.Reason, `limit "calls": 1 tokens cannot be had in time (limit)`)
}

func TestADeniedMessageIsAnsweredAsChosenAndNeverHandled(t *testing.T) {
	type ctxKey struct{}
	ctx := context.WithValue(t.Context(), ctxKey{}, "v")
	meta := mapsdk.NewUserMetadata()
	d := mapsdk.NewHandlerDatum([]byte("value"), time.Time{}, time.Time{}, nil, meta, nil)
	keys := []string{"a", "b"}
	own := mapsdk.MessagesBuilder().Append(forward("mine"))
	for name, c := range map[string]struct {
		action mapper.Action
		want   mapsdk.Messages
	}{
		"drop": {mapper.Drop(), mapsdk.Messages{mapsdk.MessageToDrop()}},
		"forward": {mapper.Forward("late", "x"), mapsdk.Messages{
			forward("value").WithKeys(keys).WithTags([]string{"late", "x"}).WithUserMetadata(meta),
		}},
		"empty by choice": {mapper.DenyFunc(denyNothing), nil},
		"function": {mapper.DenyFunc(func(got context.Context, gotKeys []string, gotDatum mapsdk.Datum, e *throttle.Error) mapsdk.Messages {
			require.Equal(t, "v", got.Value(ctxKey{}))
			require.Equal(t, keys, gotKeys)
			require.Same(t, d, gotDatum)
			require.Equal(t, throttled(), e)
			return own
		}), own},
	} {
		t.Run(name, func(t *testing.T) {
			h := &handler{}
			l := throttletest.New(throttletest.Deny(throttled()), throttletest.Grant())
			m := mapper.Wrap(h, l, mapper.WithMaxWait(time.Second), mapper.OnDenied(c.action))
			require.Equal(t, c.want, m.Map(ctx, keys, d))
			require.Zero(t, h.calls)
			require.Zero(t, l.Used())
			m.Map(ctx, keys, d)
			require.Equal(t, 1, h.calls, "the next one is handled")
		})
	}
	t.Run("nack", func(t *testing.T) {
		h := &handler{}
		m := mapper.Wrap(h, throttletest.New(throttletest.Deny(throttled())), mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Nack()))
		out := m.Map(ctx, keys, d)
		require.Len(t, out, 1)
		requireNack(t, out[0].Tags(), out[0].Value(), out[0].NackOptions())
		require.Zero(t, h.calls)
	})
}

func TestTheDelayOfANackIsAtLeast100Milliseconds(t *testing.T) {
	for range 100 {
		m := mapper.Wrap(&handler{}, throttletest.New(throttletest.Deny(nil)), mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Nack()))
		delay := *m.Map(t.Context(), nil, datum(""))[0].NackOptions().Delay
		require.GreaterOrEqual(t, delay, uint64(100))
		require.LessOrEqual(t, delay, uint64(125))
	}
}

func TestMaxWait(t *testing.T) {
	const maxWait = 5 * time.Second
	for name, c := range map[string]struct {
		after   time.Duration // the token comes
		handled int
	}{"in time": {maxWait - 1, 1}, "too late": {maxWait + 1, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tokens := make(chan struct{})
				time.AfterFunc(c.after, func() { close(tokens) })
				l, h := throttletest.New(throttletest.GrantOn(tokens)), &handler{}
				m := mapper.Wrap(h, l, mapper.WithMaxWait(maxWait), mapper.OnDenied(mapper.Drop()))
				began := time.Now()
				require.True(t, (<-call(t.Context(), m)).returned)
				require.Equal(t, min(c.after, maxWait), time.Since(began))
				require.Equal(t, c.handled, h.calls)
			})
		})
	}
}

// A throttle knows how long the tokens take, and says so in the nack.
func TestANackOfAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 1, Per: 10 * time.Second})
		require.NoError(t, err)
		defer l.Close()
		m := mapper.Wrap(&handler{}, l, mapper.WithMaxWait(4*time.Second), mapper.OnDenied(mapper.Nack()))
		began := time.Now()
		out := m.Map(t.Context(), nil, datum("x"))
		require.Zero(t, time.Since(began), "known to be too long")
		delay := *out[0].NackOptions().Delay
		require.GreaterOrEqual(t, delay, uint64(10_000))
		require.LessOrEqual(t, delay, uint64(12_501))
		time.Sleep(time.Duration(delay) * time.Millisecond)
		require.Empty(t, m.Map(t.Context(), nil, datum("x")), "delivered again, it is handled")
	})
}

// An Action is for the limit: what else goes wrong is never answered.
func TestAnActionNeverAnswersForWhatIsNoDenial(t *testing.T) {
	other := errors.New("other")
	for name, action := range map[string]mapper.Action{
		"nack": mapper.Nack(), "drop": mapper.Drop(), "forward": mapper.Forward("t"), "function": mapper.DenyFunc(denyNothing),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wrap := func(l throttle.Limiter) mapsdk.Mapper {
					return mapper.Wrap(&handler{}, l, mapper.WithMaxWait(time.Hour), mapper.OnDenied(action))
				}
				require.Equal(t, outcome{panicked: other}, <-call(t.Context(), wrap(throttletest.New(throttletest.Deny(other)))))

				ctx, cancel := context.WithCancel(t.Context())
				waiting := call(ctx, wrap(throttletest.New(throttletest.Block())))
				closed := throttletest.New()
				closed.Close()
				after := call(ctx, wrap(closed))
				time.Sleep(time.Minute)
				cancel()
				require.Equal(t, outcome{}, <-waiting)
				require.Equal(t, outcome{}, <-after)
			})
		})
	}
}

func tooLarge() *throttle.Error {
	return &throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1e12, Largest: 10}
}

// A cost that can never be granted is a denial, whatever was chosen: one message never ends the stream of the others.
func TestACostThatCanNeverBeGrantedIsDeniedAlone(t *testing.T) {
	for name, c := range map[string]struct {
		opts []mapper.Option
		want string
	}{
		"wait":    {nil, "nack"},
		"nack":    {[]mapper.Option{mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Nack())}, "nack"},
		"drop":    {[]mapper.Option{mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Drop())}, "drop"},
		"forward": {[]mapper.Option{mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Forward("t"))}, "t"},
		"function": {[]mapper.Option{mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.DenyFunc(
			func(_ context.Context, _ []string, _ mapsdk.Datum, why *throttle.Error) mapsdk.Messages {
				return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(nil).WithTags([]string{string(why.Reason)}))
			}))}, "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			refuse := func() throttle.Limiter {
				return throttletest.New(throttletest.Grant(), throttletest.Deny(tooLarge()), throttletest.Grant())
			}
			quiet := mapper.WithLogger(slog.New(slog.DiscardHandler))
			opts := append([]mapper.Option{quiet}, c.opts...)
			m, h := mapper.Wrap(&handler{}, refuse(), opts...), &handler{}
			for i := range 3 {
				o := <-call(t.Context(), m)
				require.True(t, o.returned)
				if i == 1 {
					requireDenied(t, c.want, o.out[0].Tags(), o.out[0].NackOptions())
				}
			}
			require.Zero(t, h.calls)

			b := <-callBatch(t.Context(), t, mapper.WrapBatch(batchmapsdk.BatchMapperFunc(
				func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
					out := batchmapsdk.BatchResponsesBuilder()
					for d := range in {
						out = respond(out, d.Id())
					}
					return out
				}), refuse(), opts...), "a b c")
			require.True(t, b.returned, b.panicked)
			require.Len(t, b.answers, 3)

			streams := make([]mapper.StreamOption, len(opts))
			for i := range opts {
				streams[i] = opts[i]
			}
			s := mapper.WrapStream(writing("x"), refuse(), streams...)
			for range 3 {
				require.True(t, (<-callStream(t.Context(), s)).closed)
			}
		})
	}
}

func requireDenied(t *testing.T, want string, tags []string, nack *mapsdk.NackOptions) {
	t.Helper()
	switch want {
	case "nack":
		require.NotNil(t, nack)
		require.GreaterOrEqual(t, *nack.Delay, uint64(60_000), "not again and again")
		require.Contains(t, *nack.Reason, "can never be granted, allowed: at most 10")
	case "drop":
		require.Contains(t, tags, mapsdk.DROP)
	default:
		require.Equal(t, []string{want}, tags)
	}
}

// With PerOutput the message is denied before its first output.
func TestStreamPerOutputACostThatCanNeverBeGrantedIsDeniedAlone(t *testing.T) {
	m := mapper.WrapStream(writing("a b"), throttletest.New(throttletest.Deny(tooLarge())), mapper.PerOutput(),
		mapper.WithLogger(slog.New(slog.DiscardHandler)))
	o := <-callStream(t.Context(), m)
	require.True(t, o.closed)
	require.Nil(t, o.panicked)
	require.Contains(t, o.sent, mapsdk.NACK)
	require.True(t, (<-callStream(t.Context(), m)).closed, "the next one is handled")
}
