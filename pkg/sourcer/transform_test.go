package sourcer_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

var eventTime = time.Unix(1_700_000_000, 0)

func datum(value string) transformsdk.Datum {
	meta := transformsdk.NewUserMetadata()
	meta.AddKV("group", "k", []byte("v"))
	headers := map[string]string{"tenant": "blue", "cost": "4"}
	return transformsdk.NewHandlerDatum([]byte(value), eventTime, time.Time{}, headers, meta, nil)
}

func transformed(value string) transformsdk.Message {
	return transformsdk.NewMessage([]byte(value), eventTime)
}

// A transformer is comparable, unlike a SourceTransformFunc, and counts its calls.
type transformer struct {
	calls int
	out   transformsdk.Messages
	do    func()
}

func (h *transformer) Transform(context.Context, []string, transformsdk.Datum) transformsdk.Messages {
	h.calls++
	if h.do != nil {
		h.do()
	}
	return h.out
}

func forwards() *transformer {
	return &transformer{out: transformsdk.MessagesBuilder().Append(transformed("out"))}
}

// A transformation is how a call of Transform ended.
type transformation struct {
	returned bool
	out      transformsdk.Messages
	panicked any // nil with returned false: the goroutine exited
}

// call runs h in a goroutine of its own, which it may end.
func call(ctx context.Context, h transformsdk.SourceTransformer) <-chan transformation {
	done := make(chan transformation, 1)
	go func() {
		var o transformation
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.out = h.Transform(ctx, []string{"a", "b"}, datum("value"))
		o.returned = true
	}()
	return done
}

func TestWrongTransformerOptionsAreOneErrorAndAPanicWhenItIsBuilt(t *testing.T) {
	someFunc := sourcer.DenyFunc(func(context.Context, []string, transformsdk.Datum, *throttle.Error) transformsdk.Messages { return nil })
	for _, a := range []sourcer.Action{sourcer.Nack(), sourcer.Drop(), sourcer.Forward("t"), someFunc} {
		require.NoError(t, sourcer.CheckTransformer(sourcer.WithMaxWait(time.Second), sourcer.OnDenied(a), nil))
		require.ErrorContains(t, sourcer.CheckTransformer(sourcer.OnDenied(a)),
			"OnDenied is "+a.String()+", allowed without WithMaxWait: Wait")
	}
	require.NoError(t, sourcer.CheckTransformer(sourcer.OnDenied(sourcer.Wait()), sourcer.WithLogger(nil)))
	for want, opts := range map[string][]sourcer.TransformerOption{
		"DenyFunc is nil": {sourcer.OnDenied(sourcer.DenyFunc(nil))},
		"MaxWait is -1s, allowed: 0 (no limit) or more": {sourcer.WithMaxWait(-time.Second)},
		"OnDenied is Wait, allowed with WithMaxWait":    {sourcer.WithMaxWait(time.Second)},
		"tags of Forward are [], allowed: one or more":  {sourcer.OnDenied(sourcer.Forward())},
		`tags of Forward are ["t" ""]`:                  {sourcer.OnDenied(sourcer.Forward("t", ""))},
		"tags of Forward are [\"" + transformsdk.DROP:   {sourcer.OnDenied(sourcer.Forward(transformsdk.DROP))},
		"tags of Forward are [\"" + transformsdk.NACK:   {sourcer.OnDenied(sourcer.Forward(transformsdk.NACK))},
	} {
		err := sourcer.CheckTransformer(opts...)
		require.ErrorContains(t, err, want)
		require.PanicsWithError(t, err.Error(), func() { sourcer.WrapTransformer(forwards(), nil, opts...) })
	}
	err := sourcer.CheckTransformer(sourcer.WithMaxWait(-1), sourcer.OnDenied(sourcer.Forward()))
	require.ErrorContains(t, err, "MaxWait")
	require.ErrorContains(t, err, "Forward")
}

func TestAMessageDrawsOneTokenAndReachesTheTransformerUnchanged(t *testing.T) {
	type ctxKey struct{}
	ctx := context.WithValue(t.Context(), ctxKey{}, "v")
	want := transformsdk.MessagesBuilder().Append(transformed("out").WithKeys([]string{"k"}).WithTags([]string{"t"}))
	d := datum("in")
	l := throttletest.New()
	h := sourcer.WrapTransformer(transformsdk.SourceTransformFunc(
		func(got context.Context, keys []string, gotDatum transformsdk.Datum) transformsdk.Messages {
			require.Equal(t, "v", got.Value(ctxKey{}))
			require.Equal(t, []string{"a", "b"}, keys)
			require.Same(t, d, gotDatum)
			require.Equal(t, 1, l.Used(), "drawn before the transformer runs")
			return want
		}), l, nil)
	require.Equal(t, want, h.Transform(ctx, []string{"a", "b"}, d))
	require.Equal(t, []throttletest.Draw{{Method: throttletest.Acquire, Cost: 1, Granted: 1, Used: 1}}, l.Draws())
}

func TestCostOfATransformation(t *testing.T) {
	fixed := func(n int) sourcer.TransformerOption {
		return sourcer.WithCost(func([]string, transformsdk.Datum) int { return n })
	}
	for name, c := range map[string]struct {
		option sourcer.TransformerOption
		drawn  int
	}{
		"default":     {nil, 1},
		"nil":         {sourcer.WithCost(nil), 1},
		"seven":       {fixed(7), 7},
		"zero":        {fixed(0), 0},
		"negative":    {fixed(-1), 0},
		"by bytes":    {sourcer.WithCost(sourcer.CostBytes(2)), 3},
		"by header":   {sourcer.WithCost(sourcer.CostFromHeader("cost")), 4},
		"by no cost":  {sourcer.WithCost(sourcer.CostFromHeader("tenant")), 1<<31 - 1},
		"by no bytes": {sourcer.WithCost(sourcer.CostBytes(100)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			l, h := throttletest.New(), forwards()
			require.True(t, (<-call(t.Context(), sourcer.WrapTransformer(h, l, c.option))).returned)
			require.Equal(t, 1, h.calls)
			require.Equal(t, c.drawn, l.Used())
		})
	}
}

type tagger struct {
	throttle.Limiter
	tags map[string]*throttletest.Limiter
}

func (l tagger) ForTag(tag string) throttle.Limiter { return l.tags[tag] }

func TestTagOfATransformation(t *testing.T) {
	for name, c := range map[string]struct {
		option sourcer.TransformerOption
		drawn  string
	}{
		"none":           {nil, "whole"},
		"by header":      {sourcer.WithTag(sourcer.TagFromHeader("tenant")), "blue"},
		"by no header":   {sourcer.WithTag(sourcer.TagFromHeader("none")), "whole"},
		"by key":         {sourcer.WithTag(sourcer.TagFromKey(1)), "b"},
		"by a missing":   {sourcer.WithTag(sourcer.TagFromKey(2)), "whole"},
		"a tag for free": {sourcer.WithCost(func([]string, transformsdk.Datum) int { return 0 }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			whole := throttletest.New()
			l := tagger{whole, map[string]*throttletest.Limiter{"blue": throttletest.New(), "b": throttletest.New()}}
			require.True(t, (<-call(t.Context(), sourcer.WrapTransformer(forwards(), l, c.option))).returned)
			used := map[string]int{"whole": whole.Used(), "blue": l.tags["blue"].Used(), "b": l.tags["b"].Used()}
			for limiter, n := range used {
				require.Equal(t, limiter == c.drawn, n == 1, limiter)
			}
		})
	}
}

func TestExemptDropped(t *testing.T) {
	drop, nack := transformsdk.MessageToDrop(eventTime), transformsdk.MessageToNack(eventTime, nil)
	for name, c := range map[string]struct {
		out    []transformsdk.Message
		exempt bool
	}{
		"a drop":              {[]transformsdk.Message{drop}, true},
		"two drops":           {[]transformsdk.Message{drop, drop}, true},
		"a drop, a forward":   {[]transformsdk.Message{drop, transformed("x")}, false},
		"a forward":           {[]transformsdk.Message{transformed("x")}, false},
		"nothing":             {nil, false},
		"a nack":              {[]transformsdk.Message{nack}, false},
		"drop among tags":     {[]transformsdk.Message{transformed("x").WithTags([]string{"t", transformsdk.DROP})}, true},
		"drop wins over nack": {[]transformsdk.Message{transformed("x").WithTags([]string{transformsdk.NACK, transformsdk.DROP})}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, opts := range [][]sourcer.TransformerOption{{sourcer.ExemptDropped()}, nil} {
				l := throttletest.New()
				o := <-call(t.Context(), sourcer.WrapTransformer(&transformer{out: c.out}, l, opts...))
				require.Equal(t, transformsdk.Messages(c.out), o.out)
				require.Equal(t, c.exempt && opts != nil, l.Used() == 0)
			}
		})
	}
}

func TestWhatIsDeniedIsAnsweredAsChosen(t *testing.T) {
	const maxWait = 2 * time.Second
	own := transformsdk.MessagesBuilder().Append(transformed("own"))
	check := func(t *testing.T, m transformsdk.Message, tag, value string) {
		t.Helper()
		require.Equal(t, []string{tag}, m.Tags())
		require.Equal(t, value, string(m.Value()))
		require.Equal(t, eventTime, m.EventTime(), "the watermark goes by it")
	}
	for name, c := range map[string]struct {
		action sourcer.Action
		check  func(t *testing.T, m transformsdk.Message)
	}{
		"Drop": {sourcer.Drop(), func(t *testing.T, m transformsdk.Message) { check(t, m, transformsdk.DROP, "") }},
		"Nack": {sourcer.Nack(), func(t *testing.T, m transformsdk.Message) {
			check(t, m, transformsdk.NACK, "")
			require.GreaterOrEqual(t, *m.NackOptions().Delay, uint64(100))
			require.LessOrEqual(t, *m.NackOptions().Delay, uint64(126))
			require.Contains(t, *m.NackOptions().Reason, "throttled")
		}},
		"Forward": {sourcer.Forward("later"), func(t *testing.T, m transformsdk.Message) {
			check(t, m, "later", "value")
			require.Equal(t, []string{"a", "b"}, m.Keys())
			require.Equal(t, "v", string(m.UserMetadata().Value("group", "k")))
		}},
		"DenyFunc": {
			sourcer.DenyFunc(func(_ context.Context, keys []string, d transformsdk.Datum, why *throttle.Error) transformsdk.Messages {
				if strings.Join(keys, "") != "ab" || string(d.Value()) != "value" || why == nil {
					return nil
				}
				return own
			}),
			func(t *testing.T, m transformsdk.Message) { require.Equal(t, own[0], m) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, h := throttletest.New(throttletest.Block()), forwards()
				w := sourcer.WrapTransformer(h, l, sourcer.WithMaxWait(maxWait), sourcer.OnDenied(c.action))
				began := time.Now()
				o := <-call(t.Context(), w)
				require.Equal(t, maxWait, time.Since(began))
				require.True(t, o.returned)
				require.Len(t, o.out, 1)
				c.check(t, o.out[0])
				require.Zero(t, h.calls)
				require.Zero(t, l.Used())
			})
		})
	}
}

func TestAnEmptyAnswerOfADenyFuncFailsTheStream(t *testing.T) {
	deny := sourcer.DenyFunc(func(context.Context, []string, transformsdk.Datum, *throttle.Error) transformsdk.Messages { return nil })
	o := <-call(t.Context(), sourcer.WrapTransformer(forwards(), throttletest.New(throttletest.Deny(nil)),
		sourcer.WithMaxWait(time.Second), sourcer.OnDenied(deny)))
	err, ok := o.panicked.(error)
	require.True(t, ok, "panicked with %v", o.panicked)
	require.ErrorContains(t, err, "DenyFunc returned no messages")
}

// A cost that can never be granted is a denial; without an action it is a nack.
func TestACostThatCanNeverBeGrantedIsDeniedAlone(t *testing.T) {
	refusal := &throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1000}
	var buf bytes.Buffer
	logger := sourcer.WithLogger(slog.New(slog.NewTextHandler(&buf, nil)))
	for tag, opts := range map[string][]sourcer.TransformerOption{
		transformsdk.NACK: {logger},
		transformsdk.DROP: {logger, sourcer.WithMaxWait(time.Second), sourcer.OnDenied(sourcer.Drop())},
		"later":           {logger, sourcer.WithMaxWait(time.Second), sourcer.OnDenied(sourcer.Forward("later"))},
	} {
		h := forwards()
		o := <-call(t.Context(), sourcer.WrapTransformer(h, throttletest.New(throttletest.Deny(refusal)), opts...))
		require.Nil(t, o.panicked)
		require.Contains(t, o.out[0].Tags(), tag)
		require.Zero(t, h.calls)
		require.Contains(t, buf.String(), "a cost of 1000 can never be granted")
		require.NotContains(t, buf.String(), "blue")
		buf.Reset()
	}
}

// A MonoVertex hands a map what was nacked or dropped, empty; the transformer cannot know whether there is a map.
func TestAMonoVertexIsWarnedOfWhatItLoses(t *testing.T) {
	denyAll := func(context.Context, []string, transformsdk.Datum, *throttle.Error) transformsdk.Messages { return nil }
	for name, c := range map[string]struct {
		mono   string
		action sourcer.Action
		warned bool
	}{
		"nack":               {"mv", sourcer.Nack(), true},
		"drop":               {"mv", sourcer.Drop(), true},
		"function":           {"mv", sourcer.DenyFunc(denyAll), true},
		"forward":            {"mv", sourcer.Forward("later"), false},
		"wait":               {"mv", sourcer.Wait(), false},
		"nack in a pipeline": {"", sourcer.Nack(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NUMAFLOW_MONO_VERTEX_NAME", c.mono)
			var buf bytes.Buffer
			opts := []sourcer.TransformerOption{sourcer.OnDenied(c.action), sourcer.WithLogger(slog.New(slog.NewTextHandler(&buf, nil)))}
			if name != "wait" {
				opts = append(opts, sourcer.WithMaxWait(time.Second))
			}
			next := transformsdk.SourceTransformFunc(func(context.Context, []string, transformsdk.Datum) transformsdk.Messages { return nil })
			sourcer.WrapTransformer(next, throttletest.New(), opts...)
			warnings := strings.Count(buf.String(), "level=WARN")
			if !c.warned {
				require.Zero(t, warnings)
				return
			}
			require.Equal(t, 1, warnings)
			require.Contains(t, buf.String(), "3531")
			require.Contains(t, buf.String(), "use Wait")
			sourcer.WrapTransformer(next, nil, opts...)
			require.Equal(t, 1, strings.Count(buf.String(), "level=WARN"), "without a limit nothing is denied")
		})
	}
}
