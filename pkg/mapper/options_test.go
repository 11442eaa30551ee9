package mapper_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

var noBatch = batchmapsdk.BatchMapperFunc(func(context.Context, <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses { return nil })

var noStream = mapstreamsdk.MapStreamerFunc(func(context.Context, []string, mapstreamsdk.Datum, chan<- mapstreamsdk.Message) {})

func denyNothing(context.Context, []string, mapsdk.Datum, *throttle.Error) mapsdk.Messages {
	return nil
}

func TestWrongOptionsAreFoundWhenTheHandlerIsWrapped(t *testing.T) {
	type options = []mapper.Option
	second := mapper.WithMaxWait(time.Second)
	for name, c := range map[string]struct {
		opts   options
		faults []string
	}{
		"none":                 {nil, nil},
		"nil":                  {options{nil}, nil},
		"wait":                 {options{mapper.OnDenied(mapper.Wait())}, nil},
		"the zero action":      {options{mapper.OnDenied(mapper.Action{})}, nil},
		"nack":                 {options{second, mapper.OnDenied(mapper.Nack())}, nil},
		"in the other order":   {options{mapper.OnDenied(mapper.Nack()), second}, nil},
		"drop":                 {options{second, mapper.OnDenied(mapper.Drop())}, nil},
		"forward":              {options{second, mapper.OnDenied(mapper.Forward("late", "later"))}, nil},
		"function":             {options{second, mapper.OnDenied(mapper.DenyFunc(denyNothing))}, nil},
		"the last one counts":  {options{second, mapper.WithMaxWait(0), mapper.OnDenied(mapper.Nack()), mapper.OnDenied(mapper.Wait())}, nil},
		"wait with a max wait": {options{second}, []string{"OnDenied is Wait, allowed with WithMaxWait: Nack, Drop, Forward or DenyFunc"}},
		"nack without":         {options{mapper.OnDenied(mapper.Nack())}, []string{"OnDenied is Nack, allowed without WithMaxWait: Wait"}},
		"drop without":         {options{mapper.OnDenied(mapper.Drop())}, []string{"OnDenied is Drop"}},
		"forward without":      {options{mapper.OnDenied(mapper.Forward("t"))}, []string{"OnDenied is Forward"}},
		"function without":     {options{mapper.OnDenied(mapper.DenyFunc(denyNothing))}, []string{"OnDenied is DenyFunc"}},
		"negative":             {options{mapper.WithMaxWait(-time.Second)}, []string{"WithMaxWait is -1s, allowed: 0 (no limit) or more", "OnDenied is Wait"}},
		"negative with nack":   {options{mapper.WithMaxWait(-1), mapper.OnDenied(mapper.Nack())}, []string{"WithMaxWait is -1ns"}},
		"no tags":              {options{second, mapper.OnDenied(mapper.Forward())}, []string{"tags of Forward are []"}},
		"an empty tag":         {options{second, mapper.OnDenied(mapper.Forward("a", ""))}, []string{`tags of Forward are ["a" ""]`}},
		"the tag of a drop":    {options{second, mapper.OnDenied(mapper.Forward(mapsdk.DROP))}, []string{"tags of Forward are"}},
		"the tag of a nack":    {options{second, mapper.OnDenied(mapper.Forward(mapsdk.NACK))}, []string{"tags of Forward are"}},
		"no function":          {options{second, mapper.OnDenied(mapper.DenyFunc(nil))}, []string{"function of DenyFunc is nil"}},
		"everything at once": {
			options{mapper.OnDenied(mapper.Forward()), mapper.WithMaxWait(-time.Second)},
			[]string{"WithMaxWait is -1s", "tags of Forward are []"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := mapper.Check(c.opts...)
			var streamOpts []mapper.StreamOption
			for _, o := range c.opts {
				streamOpts = append(streamOpts, o)
			}
			require.Equal(t, err, mapper.CheckStream(streamOpts...))
			for _, l := range []throttle.Limiter{nil, throttletest.New()} { // also without a limit
				wraps := []func(){
					func() { mapper.Wrap(&handler{}, l, c.opts...) },
					func() { mapper.WrapBatch(noBatch, l, c.opts...) },
					func() { mapper.WrapStream(noStream, l, streamOpts...) },
				}
				for _, wrap := range wraps {
					if err == nil {
						require.NotPanics(t, wrap)
					} else {
						require.PanicsWithError(t, err.Error(), wrap)
					}
				}
			}
			if len(c.faults) == 0 {
				require.NoError(t, err)
				return
			}
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(c.faults))
			for i, fault := range c.faults {
				require.Contains(t, lines[i], fault)
			}
		})
	}
}

func TestWrongOptionsWithPerOutput(t *testing.T) {
	require.NoError(t, mapper.CheckStream(mapper.PerOutput(), mapper.ExemptDropped(), nil))
	require.NoError(t, mapper.CheckStream(mapper.PerOutput(), mapper.OnDenied(mapper.Wait())))
	err := mapper.CheckStream(mapper.PerOutput(), mapper.WithMaxWait(time.Second))
	require.ErrorContains(t, err, "WithMaxWait is 1s, allowed: 0 with PerOutput")
	err = mapper.CheckStream(mapper.OnDenied(mapper.Drop()), mapper.WithMaxWait(time.Second), mapper.PerOutput())
	require.ErrorContains(t, err, "OnDenied is Drop, allowed: Wait with PerOutput")
	require.PanicsWithError(t, err.Error(), func() {
		mapper.WrapStream(noStream, throttletest.New(), mapper.OnDenied(mapper.Drop()), mapper.WithMaxWait(time.Second), mapper.PerOutput())
	})
}

func TestWrongOptionsWithDirect(t *testing.T) {
	require.NoError(t, mapper.CheckStream(mapper.Direct(), mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Drop())))
	err := mapper.CheckStream(mapper.Direct(), mapper.PerOutput(), mapper.ExemptDropped())
	require.ErrorContains(t, err, "Direct is set, allowed: not with PerOutput")
	require.ErrorContains(t, err, "Direct is set, allowed: not with ExemptDropped")
	require.PanicsWithError(t, err.Error(), func() {
		mapper.WrapStream(noStream, nil, mapper.Direct(), mapper.PerOutput(), mapper.ExemptDropped())
	})
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

func TestCostsAndTagsOfAMessage(t *testing.T) {
	d := mapsdk.NewHandlerDatum([]byte("12345"), time.Time{}, time.Time{},
		map[string]string{"tenant": "t", "tokens": "7", "words": "many"}, nil, nil)
	keys := []string{"k0", "k1"}
	for name, c := range map[string]struct {
		opt  mapper.Option
		cost int
		tags []string
	}{
		"bytes":             {mapper.WithCost(mapper.CostBytes(2)), 3, nil},
		"header":            {mapper.WithCost(mapper.CostFromHeader("tokens")), 7, nil},
		"no number":         {mapper.WithCost(mapper.CostFromHeader("words")), 1<<31 - 1, nil},
		"no header":         {mapper.WithCost(mapper.CostFromHeader("none")), 1, nil},
		"tag by header":     {mapper.WithTag(mapper.TagFromHeader("tenant")), 1, []string{"t"}},
		"no header for tag": {mapper.WithTag(mapper.TagFromHeader("none")), 1, nil},
		"tag by key":        {mapper.WithTag(mapper.TagFromKey(1)), 1, []string{"k1"}},
		"no such key":       {mapper.WithTag(mapper.TagFromKey(2)), 1, nil},
		"nil":               {mapper.WithTag(nil), 1, nil},
		"a function": {mapper.WithTag(func(keys []string, d mapsdk.Datum) string {
			return keys[0] + string(d.Value())
		}), 1, []string{"k012345"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &tagger{Limiter: throttletest.New()}
			mapper.Wrap(&handler{}, l, c.opt).Map(t.Context(), keys, d)
			require.Equal(t, c.cost, l.Used())
			require.Equal(t, c.tags, l.asked)
		})
	}
}

func TestAFreeMessageIsNotAskedForItsTag(t *testing.T) {
	m := mapper.Wrap(&handler{}, throttletest.New(),
		mapper.WithCost(func([]string, mapsdk.Datum) int { return 0 }),
		mapper.WithTag(func([]string, mapsdk.Datum) string { panic("asked") }))
	require.True(t, (<-call(t.Context(), m)).returned)
}

// What waits for one tag does not hold up another.
func TestTagsDoNotHoldEachOtherUp(t *testing.T) {
	busy, idle := throttletest.New(throttletest.Block()), throttletest.New()
	m := mapper.Wrap(&handler{}, byTag{"busy": busy, "idle": idle},
		mapper.WithTag(func(keys []string, _ mapsdk.Datum) string { return keys[0] }))
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		m.Map(ctx, []string{"busy"}, datum("x"))
	}()
	require.Eventually(t, func() bool { return busy.Waiting() == 1 }, testTimeout, time.Millisecond)
	m.Map(ctx, []string{"idle"}, datum("x"))
	cancel()
	<-waits
}

// A byTag has a limiter for each tag, and none for the rest.
type byTag map[string]throttle.Limiter

func (byTag) Acquire(context.Context, int) (throttle.Permit, error)     { panic("no tag") }
func (byTag) AcquireUpTo(context.Context, int) (throttle.Permit, error) { panic("no tag") }
func (byTag) TryAcquire(int) (throttle.Permit, bool)                    { panic("no tag") }
func (b byTag) ForTag(tag string) throttle.Limiter                      { return b[tag] }
